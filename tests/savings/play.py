"""One request in one stop mode, on a database of its own, through the product's worker and host."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from django.conf import settings
from django.contrib.auth.models import User
from django.test import override_settings

from agent_core.chat_models import chat_model
from agent_core.checkpoints import FencedSaver
from agent_core.graph import graph_compile
from agent_core.runs.models import Call, ModelCall, Run, StopRecord
from agent_core.runs.work import _fence, saver_pool, toolset
from reviews.errors import ReviewRefused
from reviews.models import Review
from tests.journeys.chat import (
    Chat,
    approve,
    exports_pump,
    person,
    reject,
    settle_pump,
    withdraw,
)
from tests.journeys.databases import copied
from tests.payments.processor import Processor
from tests.savings.classes import Course, Step
from tests.savings.collection import Decision, Request
from tests.savings.effects import Rows, effects_read

OFFLINE = "offline:"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where requests are played: the server's address, the filled database, the processor."""

    address: str
    filled: str
    processor: Processor


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one request used and did. `prompts` are the input tokens of each model call.

    `saved` and `tokens_saved` are what the product shows. `spared` is what the call that the stop
    has saved would have read: the model asked after the end, on what the run left, 0 when unasked.
    """

    request: Request
    mode: str
    state: str
    course: Course
    answer: str
    prompts: tuple[int, ...]
    output_tokens: int
    seconds: float
    saved: int
    tokens_saved: int
    spared: int
    effects: dict[str, Rows] = field(default_factory=dict)

    @property
    def model_calls(self) -> int:
        """Count the model calls."""
        return len(self.prompts)


def model_of(request: Request) -> str:
    """Name the model that answers: the configured provider's, else the request's offline one."""
    configured = str(settings.CHAT_MODEL)
    return request.model if configured.startswith(OFFLINE) else configured


def play(request: Request, mode: str, stage: Stage) -> Played:
    """Play a request from the filled state until nobody has anything left to do."""
    stage.processor.clear()
    with (
        copied(stage.address, stage.filled),
        override_settings(CHAT_MODEL=model_of(request), STOP_MODE=mode),
    ):
        chat = Chat(person(request.asks))
        began = time.perf_counter()
        run = chat.say(request.says)
        _decided(chat, request)
        seconds = time.perf_counter() - began
        run.refresh_from_db()
        ended = _ended(request, mode, run, seconds)
        # Only now, because what settles later is stored on its call and hides how the run ended.
        exports_pump()
        settle_pump()
        return replace(ended, effects=effects_read(stage.processor))


def _decided(chat: Chat, request: Request) -> None:
    """Let people decide, in the order in which they are asked, as long as anybody is asked."""
    for decision in request.decisions:
        review = next((each for each in chat.reviews() if each.state == "pending"), None)
        if review is None:
            return
        # What this person may not decide stays open, and the run is told not to have ended.
        with suppress(ReviewRefused):
            _decide(review, decision)


def _decide(review: Review, decision: Decision) -> None:
    if decision.does == "approve":
        changes = {"amount": decision.amount} if decision.amount else {}
        approve(review, by=decision.who, **changes)
    elif decision.does == "reject":
        reject(review, decision.sentence, by=decision.who)
    else:
        withdraw(review, by=decision.who)


def _ended(request: Request, mode: str, run: Run, seconds: float) -> Played:
    record = StopRecord.objects.filter(run=run).first()
    used = list(ModelCall.objects.filter(run=run).order_by("number", "attempt"))
    answer = run.answers.order_by("-position").first()
    saved = record.model_calls_saved if record else 0
    asks = saved and mode == "hard" and model_of(request).startswith(OFFLINE)
    return Played(
        request=request,
        mode=mode,
        state=str(run.state),
        course=_course(run, record),
        answer=answer.text if answer else "",
        prompts=tuple(call.input_tokens for call in used),
        output_tokens=sum(call.output_tokens for call in used),
        seconds=seconds,
        saved=saved,
        tokens_saved=record.tokens_saved if record else 0,
        spared=_prompt_after(run) if asks else 0,
    )


def _course(run: Run, record: StopRecord | None) -> Course:
    batches: dict[int, list[Step]] = {}
    for call in Call.objects.filter(run=run).order_by("batch", "position"):
        batches.setdefault(call.batch, []).append(_step(call))
    return Course(record.rule if record else "", tuple(map(tuple, batches.values())))


def _step(call: Call) -> Step:
    outcome = call.outcome or {}
    return Step(
        tool=call.tool,
        effect=call.effect,
        reason=str(outcome.get("reason", "")),
        stop=bool(outcome.get("stop", False)),
        repeat=call.rule == "repeat",
    )


def _prompt_after(run: Run) -> int:
    """Ask the model what a loop without a stop would ask now, and return the tokens it read."""
    graph = graph_compile(FencedSaver(saver_pool(), partial(_fence, run.pk, run.attempt)))
    state = graph.get_state({"configurable": {"thread_id": str(run.pk)}})
    rights = frozenset(User.objects.get(pk=run.requester_id).get_all_permissions())
    model = chat_model(run.model, timeout=5).bind_tools(toolset().offered(rights))
    used = model.invoke(state.values["messages"]).usage_metadata
    return used["input_tokens"] if used else 0
