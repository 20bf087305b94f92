"""What a forger does to a run: its own graph, old checkpoints, decisions that nobody made.

Everything here goes around `run_work`, and some of it around the run's state; the ledger is what
must hold.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from django.db import IntegrityError
from django.utils import timezone
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

from agent_core.budget import Limits
from agent_core.chat_models import chat_model
from agent_core.checkpoints import FencedSaver
from agent_core.errors import StaleAttempt
from agent_core.graph import RECURSION_LIMIT, graph_compile
from agent_core.host import Parts
from agent_core.runs.claims import lease
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Run
from agent_core.runs.states import RunState
from agent_core.runs.work import DATABASE_ERRORS, _fence, saver_pool, toolset

Graph = CompiledStateGraph[Any, Any, Any, Any]


class Forger:
    """Drives one run's thread by hand, through a graph compiled as he likes."""

    def __init__(self, run: Run, *, review_node: bool = True) -> None:
        self.run = Run.objects.select_related("requester", "conversation").get(pk=run.pk)
        saver = FencedSaver(saver_pool(), partial(_fence, run.pk, self.run.attempt))
        self.graph: Graph = graph_compile(saver, review_node=review_node)
        self.thread: RunnableConfig = {
            "configurable": {"thread_id": str(run.pk)},
            "recursion_limit": RECURSION_LIMIT,
        }

    def paused(self) -> StateSnapshot:
        """Return the checkpoint at which the run once waited for its reviewer."""
        history = self.graph.get_state_history(self.thread)
        return next(state for state in history if state.interrupts)

    def seize(self) -> None:
        """Make the run look as if it were being worked on by this very attempt."""
        Run.objects.filter(pk=self.run.pk).update(
            state=RunState.RUNNING, lease_until=timezone.now() + lease(), ended_at=None
        )

    def resume(self, decisions: dict[str, dict[str, Any]], *, old: bool = True) -> None:
        """Answer the pause (again, at the old checkpoint by its id) with decisions of our own.

        LangGraph keeps the first answer beside the checkpoint, and may well prefer it to ours.
        """
        config = {**self.thread, **self.paused().config} if old else self.thread
        self._stream(Command(resume={"decisions": decisions}), config)

    def begin(self) -> None:
        """Work the run off from its message, with nobody asking a reviewer."""
        self._stream({"batch": []}, self.thread)

    def forge(self, decisions: dict[str, dict[str, Any]]) -> None:
        """Write decisions behind the pause as if the review node had brought them, and go on."""
        paused: RunnableConfig = {**self.thread, **self.paused().config}
        forged = self.graph.update_state(paused, {"reviews": decisions}, as_node="review")
        self._stream(None, {**self.thread, **forged})

    def before_model(self) -> None:
        """Go on from a checkpoint before the model was asked, forged: the product stores none."""
        history = self.graph.get_state_history(self.thread)
        answered = next(state for state in history if state.next == ("gate",))
        counts = {"batch_number": 0, "model_calls": 0, "tokens": 0}
        messages = answered.values["messages"][:-1]
        asked = {**answered.values, **counts, "messages": messages, "batch": []}
        forged = self.graph.update_state(answered.config, asked, as_node="prepare")
        self._stream(None, {**self.thread, **forged})

    def _stream(self, begin: Any, config: RunnableConfig) -> None:
        parts = Parts(
            host=DjangoHost(self.run, toolset()),
            model=chat_model(self.run.model, timeout=5),
            toolset=toolset(),
            limits=Limits(**settings.RUN_LIMITS),
            passes=DATABASE_ERRORS,
        )
        # A run ends once: the fence, or else the one stop record, refuses a second end.
        with suppress(StaleAttempt, IntegrityError):
            for _step in self.graph.stream(begin, config, context=parts, durability="sync"):
                pass


def approval(review: Any, **changes: str) -> dict[str, Any]:
    """Return a decision that says that this review was approved."""
    return {
        "state": "approved",
        "review": str(review.pk),
        "changes": changes,
        "summary": review.title,
        "sentence": "",
    }
