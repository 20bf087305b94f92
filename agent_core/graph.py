"""The explicit graph that the product runs.

prepare → model → gate → act (allowed) → review → act (approved) → route → finalize | polish | model
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from langchain_core.messages import ToolMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send, interrupt

from agent_core.answer import answer_compose
from agent_core.budget import Budget, Limits, Usage
from agent_core.chat_models.counting import PromptTokens, next_prompt
from agent_core.chat_models.reading import text_of
from agent_core.contract import outcome_read, policy_block
from agent_core.ending import ANSWERED, batch_decided, polishes, run_end
from agent_core.gate import Gate, blocked, history_entry, label_after, repeated, tries_of
from agent_core.graph_state import ActState, Result, State
from agent_core.host import Parts
from agent_core.model_node import call_model
from agent_core.polish import polished
from agent_core.router import Settled

logger = logging.getLogger(__name__)

STEPS_OF_A_BATCH: Final = 6
"""model, gate, act, review, act and route: the most steps from one model call to the next."""


def recursion_limit(limits: Limits) -> int:
    """Return the steps to allow a run: its budget ends it, and never the framework's own limit."""
    return STEPS_OF_A_BATCH * limits.model_calls + STEPS_OF_A_BATCH


RECURSION_LIMIT: Final = recursion_limit(Limits())
"""The steps to allow a run with the usual limits."""


REPEATABLE: Final = ("prepare", "review", "route")
"""Steps that come to the same when they run again after a crash, and cost next to nothing.

The gate is none of them: between it and a call's end the facts it has judged may change."""


def prepare(state: State, runtime: Runtime[Parts]) -> State:
    """Build the window the model starts from, and take over what an earlier run has done."""
    host = runtime.context.host
    host.safe_point()
    return {
        "messages": host.window(),
        "history": host.earlier(),
        "results": {},
        "reviews": {},
        "batch": [],
        "batch_number": 0,
        "model_calls": 0,
        "tool_calls": 0,
        "tokens": 0,
        "held_back": [],
    }


def gate(state: State, runtime: Runtime[Parts]) -> State:
    """Give each call its verdict; store the batch, and a review for each call that needs one."""
    parts = runtime.context
    judge = Gate(parts.toolset, parts.host.context(), state["history"])
    gated = judge.batch(state["batch"])
    parts.host.gated(state["batch_number"], [item.record for item in gated])
    results = {
        item.record.id: _result(*item.result, arguments=item.record.arguments)
        for item in gated
        if item.result is not None
    }
    return {"batch": [item.state() for item in gated], "results": results}


def act(state: ActState, runtime: Runtime[Parts]) -> State:
    """Execute one call, after asking the gate once more on the facts of this moment."""
    parts, call, review = runtime.context, state["call"], state["review"]
    call_id = UUID(call["id"])
    arguments = {**call["arguments"], **((review or {}).get("changes") or {})}
    with parts.host.call_scope(call_id):
        context = replace(
            parts.host.context(),
            call_id=call_id,
            review_id=UUID(review["review"]) if review else None,
        )
        parts.host.safe_point()
        parts.host.call_began(call_id)
        verdict = Gate(parts.toolset, context, []).fresh(call, arguments)
        tool = parts.toolset.tool(call["tool"])
        if verdict.kind == "block" or tool is None or (verdict.kind == "review" and not review):
            content, artifact = blocked(verdict)
        else:
            message = parts.toolset.executed(tool, arguments, context, parts.passes)
            content, artifact = str(message.content), message.artifact
        parts.host.call_ended(call_id, label_after(tool, call, artifact), content, artifact)
    changed = bool(review and review.get("changes"))
    return {"results": {call["id"]: _result(content, artifact, arguments, changed=changed)}}


def review(state: State, runtime: Runtime[Parts]) -> State:
    """Pause once for every call of the batch that waits for a person.

    The host resumes with one checked payload when all are decided: ``{"decisions": {call: …}}``.
    Nothing may refuse the answer after `interrupt` has returned, because it is stored by then.
    """
    waiting = [call["id"] for call in state["batch"] if call["verdict"] == "review"]
    if not waiting:
        return {}
    answer = interrupt({"calls": waiting})
    decisions: dict[str, dict[str, Any]] = answer["decisions"]
    refused = {
        call["id"]: _refused(call, decisions[call["id"]], runtime)
        for call in state["batch"]
        if call["id"] in decisions and decisions[call["id"]]["state"] != "approved"
    }
    return {"reviews": {**state["reviews"], **decisions}, "results": refused}


def _refused(call: dict[str, Any], decision: dict[str, Any], runtime: Runtime[Parts]) -> Result:
    """A person's refusal is policy."""
    code = f"review.{decision['state']}"
    artifact = policy_block(code, data={"summary": str(decision.get("summary", ""))})
    content = str(decision["sentence"])
    runtime.context.host.call_ended(UUID(call["id"]), call["label"], content, artifact)
    return _result(content, artifact, call["arguments"])


def route(state: State, runtime: Runtime[Parts]) -> State:
    """Answer every call of the batch, then let the router decide over the whole of it."""
    parts = runtime.context
    results = _with_twins(state, parts)
    batch = state["batch"]
    history = [*state["history"], *(_finished(call, results[call["id"]], parts) for call in batch)]
    tool_calls = state["tool_calls"] + len(batch)
    decided = batch_decided(
        _settled(batch, results),
        _budget(state, parts, tool_calls=tool_calls, tries=tries_of(history, batch)),
        stop_mode=parts.stop_mode,
        number=state["batch_number"],
        held_back=state["held_back"],
    )
    return {
        "messages": [*state["messages"], *_answers(batch, results)],
        "results": results,
        "history": history,
        "tool_calls": tool_calls,
        "decision": decided["decision"],
        "held_back": decided["held_back"],
    }


def polish(state: State, runtime: Runtime[Parts]) -> State:
    """Let the model rewrite a finished answer; what loses a fact is thrown away."""
    parts, decision = runtime.context, state["decision"]
    answer = answer_compose(state["history"], rule=decision["rule"], evidence=decision["evidence"])
    number = state["model_calls"] + 1
    parts.host.safe_point()
    parts.host.model_began(number)
    rewrite = polished(parts.model, answer.text, number=number)
    parts.host.model_ended(rewrite.usage)
    return {
        "polished": {"text": rewrite.text, "note": rewrite.note},
        "model_calls": number,
        "tokens": state["tokens"] + rewrite.usage.input_tokens + rewrite.usage.output_tokens,
    }


def finalize(state: State, runtime: Runtime[Parts]) -> State:
    """Store why the run ended and what the staff member reads."""
    parts = runtime.context
    parts.host.safe_point()
    if not state["batch"]:
        said = text_of(state["messages"][-1])
        answered: State = {**state, "decision": ANSWERED}
        parts.host.ended(run_end(answered, stop_mode=parts.stop_mode, said=said))
        return {"decision": ANSWERED}

    def spared() -> PromptTokens:
        last = state.get("last_usage", {"read": 0, "made": 0})
        return next_prompt(parts.model, state["messages"], **last)

    rewrite = state.get("polished")
    parts.host.ended(run_end(state, stop_mode=parts.stop_mode, rewrite=rewrite, spared=spared))
    return {}


def after_model(state: State) -> str:
    """An answer without a call ends the run."""
    return "gate" if state["batch"] else "finalize"


def after_gate(state: State) -> Sequence[Send] | str:
    """Run what is allowed; of a batch that waits for a person only what may go ahead of it."""
    waits = any(call["verdict"] == "review" for call in state["batch"])
    ready = [call for call in _runnable(state) if call["early"] or not waits]
    return [Send("act_allowed", {"call": call, "review": None}) for call in ready] or "review"


def after_review(state: State) -> Sequence[Send] | str:
    """Run what was approved, and what had to wait for it."""
    sends = [
        Send("act_approved", {"call": call, "review": state["reviews"].get(call["id"])})
        for call in state["batch"]
        if call["id"] not in state["results"] and not call["twin_of"]
    ]
    return sends or "route"


def after_route(state: State, runtime: Runtime[Parts]) -> str:
    """Go where the router has decided."""
    decision = state["decision"]
    if not decision["stop"]:
        return "model"
    parts = runtime.context
    may_polish = polishes(decision, parts.stop_mode) and _budget(state, parts).exceeded() is None
    return "polish" if may_polish else "finalize"


def graph_compile(
    saver: BaseCheckpointSaver[Any] | None, *, review_node: bool = True
) -> CompiledStateGraph[State, Parts, State, State]:
    """Compile the graph; `review_node=False` exists to prove that the ledger does not need it."""
    graph = StateGraph(State, context_schema=Parts)
    graph.add_node("prepare", prepare)
    graph.add_node("model", call_model)
    graph.add_node("gate", gate)
    graph.add_node("act_allowed", act, input_schema=ActState)
    graph.add_node("review", review if review_node else _unreviewed)
    graph.add_node("act_approved", act, input_schema=ActState)
    graph.add_node("route", route)
    graph.add_node("polish", polish)
    graph.add_node("finalize", finalize)
    graph.add_edge(START, "prepare")
    graph.add_edge("prepare", "model")
    graph.add_conditional_edges("model", after_model, ["gate", "finalize"])
    graph.add_conditional_edges("gate", after_gate, ["act_allowed", "review"])
    graph.add_edge("act_allowed", "review")
    graph.add_conditional_edges("review", after_review, ["act_approved", "route"])
    graph.add_edge("act_approved", "route")
    graph.add_conditional_edges("route", after_route, ["finalize", "polish", "model"])
    graph.add_edge("polish", "finalize")
    graph.add_edge("finalize", END)
    return graph.compile(checkpointer=saver)


def _unreviewed(state: State) -> State:
    return {}


def _runnable(state: State) -> list[dict[str, Any]]:
    return [
        call
        for call in state["batch"]
        if call["verdict"] == "allow" and call["id"] not in state["results"] and not call["twin_of"]
    ]


def _result(
    content: str, artifact: object, arguments: Mapping[str, Any], *, changed: bool = False
) -> Result:
    kept = dict(artifact) if isinstance(artifact, Mapping) else None
    return {
        "content": content,
        "artifact": kept,
        "arguments": dict(arguments),
        "changed": changed,
    }


def _with_twins(state: State, parts: Parts) -> dict[str, Result]:
    """Give a call that stands twice in the batch the outcome of its first one."""
    results = dict(state["results"])
    for call in state["batch"]:
        if call["id"] in results:
            continue
        first = results.get(call["twin_of"] or "")
        if first is None or first["artifact"] is None:
            results[call["id"]] = _result("This step gave no clear result.", None, {})
            continue
        content, artifact = repeated(first["content"], first["artifact"])
        label = label_after(parts.toolset.tool(call["tool"]), call, artifact)
        parts.host.call_ended(UUID(call["id"]), label, content, artifact)
        results[call["id"]] = _result(content, artifact, call["arguments"])
    return results


def _settled(batch: Sequence[dict[str, Any]], results: Mapping[str, Result]) -> list[Settled]:
    return [
        Settled(
            call_id=call["id"],
            outcome=outcome_read(results[call["id"]]["artifact"]),
            remaining=call["remaining"],
        )
        for call in batch
    ]


def _finished(call: dict[str, Any], result: Result, parts: Parts) -> dict[str, Any]:
    if outcome_read(result["artifact"]) is None:
        logger.warning("outcome.unclear", extra={"call": call["id"], "tool": call["tool"]})
    return history_entry(
        parts.toolset,
        parts.host.context,
        {**call, "changed": result["changed"], "executed": result["arguments"]},
        content=result["content"],
        artifact=result["artifact"],
    )


def _answers(batch: Sequence[dict[str, Any]], results: Mapping[str, Result]) -> list[ToolMessage]:
    return [
        ToolMessage(
            content=results[call["id"]]["content"],
            artifact=results[call["id"]]["artifact"],
            tool_call_id=call["id"],
            name=call["tool"],
        )
        for call in batch
    ]


def _budget(state: State, parts: Parts, *, tool_calls: int = 0, tries: int = 0) -> Budget:
    """Return what the run has used, held against its limits."""
    usage = Usage(
        model_calls=state["model_calls"],
        tool_calls=tool_calls,
        tokens=state["tokens"],
        seconds=parts.host.worked_seconds(),
        tries=tries,
    )
    return Budget(limits=parts.limits, usage=usage)
