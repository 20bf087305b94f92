"""The same contract and router for people who use LangChain's `create_agent`.

`countersign_stack` builds the whole ordered stack and brings the tools with it, so that
`create_agent(model, middleware=stack)` is all.

The order is public, and nothing belongs between the parts:

1. `Authorisation`: who may use what; a tool that was not handed to the factory is not offered.
2. `SpendCaps`: model calls, tokens, time. Money is a policy's to cap, at the gate.
3. `OutputSize`, 4. `Redaction`: on each tool message before it is checkpointed. Of such hooks the
   last one acts first, so what is cut has been masked whole.
5. `Review`, 6. `GatedCalls`: hooks after the model run from the last to the first, so the gate
   judges, and then a person is asked, once for a batch.
7. `Stop`: the router, over the whole batch, before the model is called again.

Before the stack stands what must act in every turn or in place of the model: a retry of the model,
a fallback, `PIIMiddleware(apply_to_tool_results=True)`. A retry of tools has no effect there: a
call is begun once, and the service behind a tool tries again, under one key. `Stop` jumps to the
end, and a jump skips every later `before_model` hook and all `after_model` hooks: a middleware
after the stack misses the turns that stop, and `PIIMiddleware(apply_to_output=True)` sees no
relayed answer wherever it stands. What stands after the stack can change nothing of what is
executed. A cache of answers stands there, where a message that comes again gets an id of its own.

An error of the provider leaves the stack as it is, so that a retry or a fallback knows it; the
explicit graph turns it into `ModelUnavailable` or `ModelFailed`. The caps count answers: what such
a middleware asks for in vain costs a request that no record shows and no limit holds back, so its
own number of tries has to be small.

A pause asks `{"calls": [...]}` and is answered with `{"decisions": {call id: decision}}`, one for
each call. A decision has a `state` (approved, rejected, withdrawn, expired), and may have `changes`
(only of the fields listed in `may_change`; a figure can only be lowered), `review` (an id, for the
tool) and `sentence` (for the chat). An answer that does not fit is asked again, and `refused` in
the pause says why. Who may decide is for the caller to check.

Who may write a thread's state may do anything: on a server of your own let nobody send a
`Command` with an update. Input cannot set what the stack keeps. A `response_format` is refused.

How a turn ended is kept in `state["countersign"]["decision"]`: `rule`, `evidence`, `headline`,
`done`, `not_done`, `model_calls_made`, `model_calls_saved`, `tokens_saved`, `tokens_estimated`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from agent_core.budget import Limits
from agent_core.contract import RunContext, Tool
from agent_core.errors import ContractBroken
from agent_core.middleware.gate import GatedCalls, Review
from agent_core.middleware.parts import (
    Authorisation,
    OutputSize,
    Part,
    Redaction,
    Rules,
    SpendCaps,
    direct_refused,
)
from agent_core.middleware.stop import Stop
from agent_core.router import STOP_MODES
from agent_core.toolset import Toolset

PARTS: Final[tuple[type[Part], ...]] = (
    Authorisation,
    SpendCaps,
    OutputSize,
    Redaction,
    Review,
    GatedCalls,
    Stop,
)
"""The parts of the stack in their order."""

Stack = list[AgentMiddleware[Any, Any, Any]]


def countersign_stack(
    tools: Iterable[Tool | BaseTool],
    context: Callable[[], RunContext],
    *,
    limits: Limits | None = None,
    stop_mode: str = "hard",
    polish_with: BaseChatModel | None = None,
    passes: tuple[type[BaseException], ...] = (),
    clock: Callable[[], float] = time.time,
) -> Stack:
    """Build the whole stack for `create_agent`: authorisation, spend caps, output size, redaction,
    review and gate, stop. The module says what may stand before and after it.

    `context` says who acts; it is read anew before every decision, never on an event loop's thread.
    A LangChain tool among `tools` has no policy and no outcome of its own: each of its calls waits
    for a person. `polish_with` rewrites the finished answers of the stop mode `polish`. `passes`
    are errors the tool boundary lets through. `clock` gives seconds that go on after a restart.

    Raises:
        ContractBroken: a tool returns directly, two share a name, the stop mode is unknown, or
            there is no model to polish with; or one of these is of another kind.
    """
    listed = list(tools)
    _kinds_known(listed, limits, polish_with)
    foreign = {tool.name: tool for tool in listed if isinstance(tool, BaseTool)}
    direct_refused(foreign.values())
    _names_apart(listed)
    _mode_known(stop_mode, polish_with)
    rules = Rules(
        toolset=Toolset(tool for tool in listed if isinstance(tool, Tool)),
        foreign=foreign,
        context=context,
        limits=limits or Limits(),
        stop_mode=stop_mode,
        polish_with=polish_with,
        passes=passes,
        clock=clock,
    )
    return [part(rules) for part in PARTS]


def _kinds_known(tools: Sequence[object], limits: object, polish_with: object) -> None:
    """Refuse at once what would fail in the first turn that uses it, behind an effect perhaps."""
    for tool in tools:
        if not isinstance(tool, Tool | BaseTool):
            raise ContractBroken(
                f"{tool!r} is neither a Tool nor a LangChain tool; decorate a function with @tool."
            )
    if not isinstance(limits, Limits | None):
        raise ContractBroken("The limits are an object: Limits(model_calls=…).")
    if not isinstance(polish_with, BaseChatModel | None):
        raise ContractBroken("polish_with is a chat model, not the name of one.")


def _names_apart(tools: Sequence[Tool | BaseTool]) -> None:
    names = [tool.name for tool in tools]
    for name in names:
        if names.count(name) > 1:
            raise ContractBroken(f"Two tools are called {name}.")


def _mode_known(stop_mode: str, polish_with: BaseChatModel | None) -> None:
    if stop_mode not in STOP_MODES:
        raise ContractBroken(
            f"There is no stop mode {stop_mode!r}; there are {', '.join(STOP_MODES)}."
        )
    if stop_mode == "polish" and polish_with is None:
        raise ContractBroken(
            "The stop mode polish needs a model to rewrite the answer with: give polish_with."
        )
