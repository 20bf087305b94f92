"""The end of the stack: the router over the whole batch, and the record of how a turn ended."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, cast

from langchain.agents.middleware import hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from agent_core.answer import answer_compose
from agent_core.chat_models.counting import next_prompt
from agent_core.contract import outcome_read
from agent_core.ending import batch_decided, polishes, run_end
from agent_core.gate import tries_of
from agent_core.middleware.messages import RELAYED, replies_completed
from agent_core.middleware.parts import Part, Update
from agent_core.middleware.state import (
    CountersignState,
    answers_of,
    entries_put_in,
    entry_finished,
    kept_of,
    record_of,
)
from agent_core.polish import polished
from agent_core.router import Settled

logger = logging.getLogger(__name__)

_CUT_SHORT: Final = {"rule": "cancelled", "stop": True, "evidence": {}}
"""The router did not end this turn: another middleware did."""


class Stop(Part):
    """Lets the router decide over the whole batch before the model is called again."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Decide whether the model is called again."""
        kept = kept_of(state)
        batch = [*kept["batch"], *entries_put_in(state["messages"], kept["batch"])]
        if not batch:
            return None
        settled, late = answers_of(batch, state["messages"])
        toolset, context = self._rules.toolset, self._rules.context
        history = [
            *kept["history"],
            *(entry_finished(toolset, context, call, settled) for call in batch),
        ]
        tool_calls = kept["tool_calls"] + len(batch)
        budget = self._rules.budget(kept, tool_calls=tool_calls, tries=tries_of(history, batch))
        outcomes = {call["id"]: outcome_read(settled[call["id"]].artifact) for call in batch}
        decided = batch_decided(
            [
                Settled(call_id=key, outcome=outcomes[key], remaining=call["remaining"])
                for key, call in zip(outcomes, batch, strict=True)
            ],
            budget,
            stop_mode=self._rules.stop_mode,
            number=kept["batch_number"],
            held_back=kept["held_back"],
        )
        ended = {"batch": [], "history": history, "tool_calls": tool_calls, **decided}
        update = {"messages": late, "countersign": {**kept, **ended}}
        return {**update, "jump_to": "end"} if decided["decision"]["stop"] else update

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Decide whether the model is called again, off the event loop."""
        return await asyncio.to_thread(self.before_model, state, runtime)

    def after_agent(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Relay the tools' own text when the router has stopped the turn, and record its end."""
        kept, messages = kept_of(state), state["messages"]
        decision = kept["decision"]
        if decision is None or not decision["stop"]:
            return self._cut_short(kept, messages)
        if decision["rule"] == "answered":
            return {"countersign": self._recorded(kept)}
        rewrite, kept = self._rewritten(kept)
        end = run_end(
            kept,
            stop_mode=self._rules.stop_mode,
            rewrite=rewrite,
            spared=lambda: next_prompt(None, messages, **kept["last_usage"]),
        )
        relay = AIMessage(end.answer, response_metadata={RELAYED: end.rule})
        return {"messages": [relay], "countersign": {**kept, "decision": record_of(end)}}

    async def aafter_agent(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Relay and record, off the event loop."""
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def _cut_short(self, kept: dict[str, Any], messages: list[AnyMessage]) -> dict[str, Any]:
        logger.warning("turn.cut_short")
        completed = replies_completed(messages, kept["batch"])
        kept = {**kept, "batch": [], "decision": _CUT_SHORT}
        update: dict[str, Any] = {"countersign": self._recorded(kept)}
        if completed is not None:
            update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *completed]
        return update

    def _recorded(self, kept: dict[str, Any]) -> dict[str, Any]:
        """Return what is kept, with the record of a turn that no batch has stopped."""
        return {**kept, "decision": record_of(run_end(kept, stop_mode=self._rules.stop_mode))}

    def _rewritten(self, kept: dict[str, Any]) -> tuple[dict[str, str] | None, dict[str, Any]]:
        """Return the text and note of a polish, or None when none was tried; and the usage then."""
        model, decision = self._rules.polish_with, kept["decision"]
        wanted = polishes(decision, self._rules.stop_mode)
        if model is None or not wanted or self._rules.budget(kept).exceeded() is not None:
            return None, kept
        answer = answer_compose(kept["history"], rule="completed", evidence=decision["evidence"])
        number = kept["model_calls"] + 1
        # Whoever streams the turn must not see a rewrite before its facts are compared.
        unseen = cast("BaseChatModel", model.with_config(tags=[TAG_NOSTREAM]))
        rewrite = polished(unseen, answer.text, number=number)
        used = rewrite.usage.input_tokens + rewrite.usage.output_tokens
        usage = {"model_calls": number, "tokens": kept["tokens"] + used}
        return {"text": rewrite.text, "note": rewrite.note}, {**kept, **usage}
