"""What the page of one run shows, in words: no identifier, tool name or code reaches a person."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.auth.models import User
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core.runs.models import Call, ModelCall, Run
from agent_core.runs.states import CallState, RunState
from desk.reviewing import Card, card_of
from desk.showing import took
from desk.transcript import CallLine, Stop, call_line, stop_of
from reviews.selectors import reviews_of_run

OUTCOMES: Final[Mapping[str, Any]] = {
    "completed": gettext_lazy("completed"),
    "transient": gettext_lazy("not now; may work later"),
    "fatal": gettext_lazy("failed for good"),
    "policy_block": gettext_lazy("refused"),
}

VERDICTS: Final[Mapping[str, Any]] = {
    "allow": gettext_lazy("allowed by rule"),
    "review": gettext_lazy("a person had to decide"),
    "block": gettext_lazy("refused by rule"),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One batch of calls that the model asked for together."""

    number: int
    calls: list["StepCall"]


@dataclass(frozen=True, slots=True)
class StepCall:
    """One call with what the rule said before it and what came of it."""

    line: CallLine
    verdict: str
    outcome: str
    stops: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """One run in full."""

    run: Run
    state: str
    stop: Stop | None
    took: str
    steps: list[Step]
    model_calls: list[ModelCall]
    input_tokens: int
    output_tokens: int
    reviews: list[Card]
    own: bool


def run_page(run: Run, viewer: User) -> RunPage:
    """Return everything that the page of a run shows."""
    batches: dict[int, list[Call]] = defaultdict(list)
    for call in run.calls.all():
        batches[call.batch].append(call)
    model_calls = list(run.model_calls.all())
    return RunPage(
        run=run,
        state=str(RunState(run.state).label),
        stop=stop_of(run),
        took=took(run.created_at, run.ended_at),
        steps=[
            Step(number, [_step_call(call) for call in calls])
            for number, (_batch, calls) in enumerate(sorted(batches.items()), start=1)
        ],
        model_calls=model_calls,
        input_tokens=sum(call.input_tokens for call in model_calls),
        output_tokens=sum(call.output_tokens for call in model_calls),
        reviews=[card_of(review, viewer, fresh=True) for review in reviews_of_run(run.pk)],
        own=run.requester_id == viewer.pk,
    )


def _step_call(call: Call) -> StepCall:
    outcome = call.outcome if isinstance(call.outcome, dict) else {}
    reason = str(outcome.get("reason", ""))
    said = str(OUTCOMES.get(reason, _("unclear") if call.state == CallState.UNKNOWN else ""))
    if outcome.get("already_applied"):
        said = _("%(outcome)s; it had been done before") % {"outcome": said}
    stops = ""
    if outcome:
        stops = _("may end the request") if outcome.get("stop") else _("the assistant reads it")
    return StepCall(call_line(call), str(VERDICTS.get(call.verdict, "")), said, stops)
