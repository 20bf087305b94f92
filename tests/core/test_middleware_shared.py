"""One stack may serve many turns at once, and several agents: none of them sees another."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage

from agent_core.chat_models.counting import CountsTokens
from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import Artifact, RunContext, completed
from agent_core.harness.memory import context_make
from agent_core.harness.probes import RIGHT, probe
from agent_core.middleware import Stack, countersign_stack
from tests.core.turns import one


class CountsMany(ScriptedModel):
    """A model that counts a thousand tokens for every message, whoever asks."""

    def tokens_counted(self, messages: Sequence[BaseMessage]) -> int:
        """Count them."""
        return 1_000 * len(messages)


def stack(run: Any = None) -> Stack:
    """Return a stack with one tool."""
    acting = context_make(RIGHT)
    tool = probe("receipt")
    return countersign_stack([replace(tool, run=run) if run else tool], lambda: acting)


def record(made: Stack, model: ScriptedModel) -> dict[str, Any]:
    """Play one turn of an agent of its own with this stack, and return how it ended."""
    agent: Any = create_agent(model, middleware=made)
    kept = agent.invoke({"messages": [HumanMessage("Go on.")]})["countersign"]["decision"]
    return {name: value for name, value in kept.items() if name != "evidence"}


def test_what_a_turn_has_saved_does_not_depend_on_the_turns_beside_it() -> None:
    """The second turn begins and ends while the tool of the first one runs."""
    begun, over = threading.Event(), threading.Event()

    def waiting(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Wait for the other turn."""
        if not begun.is_set():
            begun.set()
            assert over.wait(10)
        return f"Receipt for {thing}.", completed("probe.done", stop=True)

    shared = stack(waiting)
    plain, other = ScriptedModel(steps=[one("receipt")]), CountsMany(steps=[one("receipt")])
    assert isinstance(other, CountsTokens)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(record, shared, plain)
        assert begun.wait(10)
        beside = record(shared, other)
        over.set()
        ended = first.result()
    assert ended == record(stack(waiting), ScriptedModel(steps=[one("receipt")]))
    assert beside == record(stack(waiting), CountsMany(steps=[one("receipt")]))
    assert ended["tokens_saved"] > 0


def test_two_agents_of_one_stack_record_what_each_alone_would() -> None:
    shared = stack()
    models = [ScriptedModel, CountsMany, ScriptedModel]
    together = [record(shared, model(steps=[one("receipt")])) for model in models]
    alone = [record(stack(), model(steps=[one("receipt")])) for model in models]
    assert together == alone
