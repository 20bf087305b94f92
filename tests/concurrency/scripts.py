"""Somebody's shell on a machine of the product: its graph, tools and saver, without its worker."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from agent_core.budget import Limits
from agent_core.chat_models import chat_model
from agent_core.checkpoints import FencedSaver
from agent_core.contract import RunContext
from agent_core.graph import graph_compile
from agent_core.host import Parts
from agent_core.runs import work
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Run


class Loose(DjangoHost):
    """What a careless script makes of the product's host: it writes nothing and fences nothing."""

    def context(self) -> RunContext:
        """Let every write of the ledger pass the fence."""
        return replace(super().context(), fence=lambda: None)

    def safe_point(self) -> None:
        """Never stop."""

    def gated(self, batch: int, calls: Any) -> None:
        """Store no verdicts."""

    def call_began(self, call_id: UUID) -> None:
        """Store no beginning."""

    def call_ended(self, *_given: Any) -> None:
        """Store no end."""

    def ended(self, end: Any) -> None:
        """Store no stop record."""


class Script:
    """Graph, tools and saver of one run, in the hands of a script."""

    def __init__(self, run: Run, host: type[DjangoHost] = DjangoHost) -> None:
        self.run = Run.objects.select_related("requester", "conversation", "message").get(pk=run.pk)
        fence = partial(work._fence, run.pk, self.run.attempt)
        self.graph = graph_compile(FencedSaver(work.saver_pool(), fence))
        self.parts = Parts(
            host=host(self.run, work.toolset()),
            model=chat_model(run.model, timeout=10),
            toolset=work.toolset(),
            limits=Limits(**settings.RUN_LIMITS),
            stop_mode=run.stop_mode,
            passes=work.DATABASE_ERRORS,
        )

    def config(self, checkpoint_id: str = "") -> RunnableConfig:
        """Name the run's thread, and an old checkpoint of it if one is given."""
        known = {"thread_id": str(self.run.pk)} | (
            {"checkpoint_id": checkpoint_id, "checkpoint_ns": ""} if checkpoint_id else {}
        )
        return {"configurable": known}

    def asked(self) -> list[StateSnapshot]:
        """List the checkpoints at which the thread has waited, the newest first."""
        history = self.graph.get_state_history(self.config())
        return [state for state in history if state.interrupts]

    def resume(self, answer: Any, checkpoint_id: str = "") -> Any:
        """Resume with an answer of one's own."""
        return self.graph.invoke(
            Command(resume=answer),
            self.config(checkpoint_id),
            context=self.parts,
            durability="sync",
        )

    def thread(self) -> tuple[str, tuple[str, ...]]:
        """Return where the thread stands: its newest checkpoint, and what comes next."""
        state = self.graph.get_state(self.config())
        return str(state.config["configurable"]["checkpoint_id"]), state.next


def checkpoint_of(state: StateSnapshot) -> str:
    """Return the id of a checkpoint."""
    return str(state.config["configurable"]["checkpoint_id"])


class Forging(Loose):
    """A host whose contexts name a call that the ledger has never seen."""

    def context(self) -> RunContext:
        """Name a new call wherever the graph names the old one."""
        return _Forged(**vars_of(super().context()))


class _Forged(RunContext):
    """A context that is always about a call of its own."""

    def __init__(self, **given: Any) -> None:
        """Mint the call anew."""
        super().__init__(**(given | {"call_id": uuid4()}))


def vars_of(context: RunContext) -> dict[str, Any]:
    """Return a context's fields."""
    return {name: getattr(context, name) for name in context.__dataclass_fields__}
