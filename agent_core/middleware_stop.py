"""The end of the stack: the router over the whole batch, and the record of how a turn ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, cast

from langchain.agents.middleware import hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, RemoveMessage
from langgraph.constants import TAG_NOSTREAM
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from agent_core.answer import Answer, answer_compose
from agent_core.chat_models.counting import PromptTokens, next_prompt
from agent_core.contract import outcome_read
from agent_core.gate import tries_of
from agent_core.middleware_messages import RELAYED, replies_completed
from agent_core.middleware_parts import Part, Update
from agent_core.middleware_state import (
    CountersignState,
    answers_of,
    decision_kept,
    entries_put_in,
    entry_finished,
    kept_of,
)
from agent_core.polish import polished
from agent_core.router import MEASURED_RULES, Settled, decide, measured

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
        decision = decide(
            [
                Settled(call_id=key, outcome=outcomes[key], remaining=call["remaining"])
                for key, call in zip(outcomes, batch, strict=True)
            ],
            budget,
        )
        held_back = list(kept["held_back"])
        if self._rules.stop_mode == "never" and decision.rule in MEASURED_RULES:
            held_back.append({"rule": decision.rule, "batch": kept["batch_number"]})
            decision = measured(decision, budget)
        ended: dict[str, Any] = {"batch": [], "history": history, "tool_calls": tool_calls}
        kept = {**kept, **ended, "held_back": held_back, "decision": decision_kept(decision)}
        update = {"messages": late, "countersign": kept}
        return {**update, "jump_to": "end"} if decision.stop else update

    @hook_config(can_jump_to=["end"])
    async def abefore_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Decide whether the model is called again, off the event loop."""
        return await asyncio.to_thread(self.before_model, state, runtime)

    def after_agent(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Relay the tools' own text when the router has stopped the turn, and record its end."""
        kept, messages = kept_of(state), state["messages"]
        decision = kept["decision"]
        if decision is None or not decision["stop"]:
            logger.warning("turn.cut_short")
            completed = replies_completed(messages, kept["batch"])
            record = self._record({**kept, "decision": _CUT_SHORT}, _composed(kept, _CUT_SHORT))
            update: dict[str, Any] = {"countersign": {**record, "batch": []}}
            if completed is not None:
                update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *completed]
            return update
        answer = _composed(kept, decision)
        if decision["rule"] == "answered":
            return {"countersign": self._record(kept, answer)}
        text, note, kept = self._worded(kept, answer.text)
        spared = PromptTokens()
        saves = decision["rule"] != "budget" and not note
        if saves:
            model = cast("BaseChatModel", self._rules.model)
            spared = next_prompt(model, messages, **kept["last_usage"])
        record = self._record(kept, answer, note=note, saves=saves, spared=spared)
        relay = AIMessage(text, response_metadata={RELAYED: decision["rule"]})
        return {"messages": [relay], "countersign": record}

    async def aafter_agent(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Relay and record, off the event loop."""
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def _worded(self, kept: dict[str, Any], text: str) -> tuple[str, str, dict[str, Any]]:
        """Return the text to show, what became of a rewrite ("" when none was tried), and usage."""
        model = self._rules.polish_with
        polishes = self._rules.stop_mode == "polish" and kept["decision"]["rule"] == "completed"
        if model is None or not polishes or self._rules.budget(kept).exceeded() is not None:
            return text, "", kept
        number = kept["model_calls"] + 1
        # Whoever streams the turn must not see a rewrite before its facts are compared.
        unseen = cast("BaseChatModel", model.with_config(tags=[TAG_NOSTREAM]))
        rewrite = polished(unseen, text, number=number)
        used = rewrite.usage.input_tokens + rewrite.usage.output_tokens
        usage = {"model_calls": number, "tokens": kept["tokens"] + used}
        return rewrite.text, rewrite.note, {**kept, **usage}

    def _record(
        self,
        kept: Mapping[str, Any],
        answer: Answer,
        *,
        note: str = "",
        saves: bool = False,
        spared: PromptTokens | None = None,
    ) -> dict[str, Any]:
        """Return what is kept, with the record of how the turn ended; as `RunEnd` of the graph."""
        decision = kept["decision"]
        evidence = dict(decision["evidence"])
        if kept["held_back"]:
            evidence["would_have_stopped"] = kept["held_back"]
        if self._rules.stop_mode == "polish" and decision["rule"] == "completed":
            evidence["polish"] = note or "no budget"
        stopped = decision["rule"] not in ("answered", "cancelled")
        record = {
            **decision,
            "evidence": evidence,
            "headline": answer.headline if stopped else "",
            "done": list(answer.done),
            "not_done": list(answer.not_done),
            "model_calls_made": kept["model_calls"],
            "model_calls_saved": int(saves),
            "tokens_saved": spared.tokens if spared else 0,
            "tokens_estimated": spared.estimated if spared else False,
        }
        return {**kept, "decision": record}


def _composed(kept: Mapping[str, Any], decision: Mapping[str, Any]) -> Answer:
    return answer_compose(kept["history"], rule=decision["rule"], evidence=decision["evidence"])
