"""What can be said of a tool by calling it with examples: what it returns, and what it says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphBubbleUp

from agent_core.contract import (
    CONTRACT_VERSION,
    REASONS,
    Outcome,
    RunContext,
    Tool,
    completed,
    fatal,
    outcome_read,
    policy_block,
    transient,
)
from agent_core.errors import ContractBroken, ControlError
from agent_core.gate import Gate, Gated, identity_of
from agent_core.harness.findings import Finding, Raised, attempted
from agent_core.toolset import ArgumentsBad, Toolset

Arguments = Mapping[str, Any]

_UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\b")
_JSON: Final = re.compile(r"[{\[]\s*[\"'{\[]|[\"']\s*[}\]]|\{\s*\}")
_FLAG: Final = re.compile(
    r"\b(?:reason|status|outcome|stop|already_applied)\b\s*[:=]\s*\w+"
    r"|\b(?:return_direct|end_turn|stop_now|goto)\b|(?-i:\bSTOP\b)",
    re.IGNORECASE,
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# "completed" is a word that people use, too; as a flag it is found above.
_REASON: Final = re.compile(
    rf"\b(?:{'|'.join(reason for reason in REASONS if reason != 'completed')})\b"
)


def call_findings(tool: Tool | BaseTool, arguments: Arguments, acting: RunContext) -> list[Finding]:
    """Call a tool once and return what is wrong with what came of it."""
    context = replace(acting, call_id=uuid4())
    if isinstance(tool, Tool):
        found = list(_called(tool, arguments, context))
    else:
        found = list(_invoked(tool, arguments, context))
    return [replace(each, text=f"{each.text} Called with {_short(arguments)}.") for each in found]


def _called(tool: Tool, arguments: Arguments, context: RunContext) -> Iterator[Finding]:
    toolset = Toolset([tool])
    checked = attempted(lambda: toolset.checked(tool.name, arguments))
    if isinstance(checked, Raised):
        bad = isinstance(checked.error, ArgumentsBad)
        told = checked.error if bad else f"checking it raises {checked.told}."
        yield Finding("example", f"The example does not fit its arguments: {told}")
        return
    given = checked.arguments
    judged = attempted(lambda: _judged(tool, toolset, given, context))
    if isinstance(judged, Raised):
        yield Finding(
            "gate",
            f"Its facts, policies, identity or proposal raise {judged.told}. Nothing turns that "
            "into an outcome: let them return.",
        )
        return
    gated, unstable = judged
    yield from unstable
    if gated.result is not None:
        yield from _said(tool, gated.result)
        return
    if gated.record.verdict == "review":
        context = replace(context, review_id=uuid4())
    yield from _ended(tool, attempted(lambda: tool.run(context, **given)))


def _judged(
    tool: Tool, toolset: Toolset, arguments: dict[str, Any], context: RunContext
) -> tuple[Gated, list[Finding]]:
    asked = {"id": str(context.call_id), "position": 0, "tool": tool.name, "arguments": arguments}
    unstable = list(_identity(tool, arguments, context))
    return Gate(toolset, context, []).batch([asked])[0], unstable


def _invoked(tool: BaseTool, arguments: Arguments, context: RunContext) -> Iterator[Finding]:
    call = {
        "type": "tool_call",
        "id": str(context.call_id),
        "name": tool.name,
        "args": dict(arguments),
    }
    answer = attempted(lambda: tool.invoke(call))
    if isinstance(answer, ToolMessage):
        answer = (answer.content, answer.artifact)
    yield from _ended(tool, answer)


def _ended(tool: Tool | BaseTool, ended: object) -> Iterator[Finding]:
    if isinstance(ended, Raised):
        yield _raised(ended)
        return
    yield from _said(tool, ended)


def _raised(raised: Raised) -> Finding:
    error = raised.error
    if isinstance(error, ContractBroken):
        return Finding(
            "contract",
            f"It does not keep the contract: {error} The boundary makes the call fatal, whatever "
            "was done before.",
        )
    if isinstance(error, ControlError | GraphBubbleUp) or not isinstance(error, Exception):
        return Finding(
            "ends",
            f"It raises {raised.told}, which no boundary turns into an outcome: the run or its "
            "process would end there. Return transient(...) or fatal(...).",
        )
    return Finding(
        "raises",
        f"It raises {raised.told}. The boundary makes that fatal and can only say that something "
        "broke: return transient(...) or fatal(...) where more can be said.",
        breaks=False,
    )


def _identity(tool: Tool, arguments: Arguments, context: RunContext) -> Iterator[Finding]:
    if tool.identity is None:
        return
    again = replace(context, call_id=uuid4())
    if not str(tool.identity(context, arguments) or "").strip():
        yield Finding(
            "identity", "Its identity is empty. Build it from what makes two calls the same wish."
        )
    elif identity_of(tool, context, arguments) != identity_of(tool, again, dict(arguments)):
        yield Finding(
            "identity",
            "The same call twice has two identities, so that a repeat would be done again. Leave "
            "out ids, times and chance.",
        )


def _said(tool: Tool | BaseTool, ended: object) -> Iterator[Finding]:
    if not isinstance(ended, tuple) or len(ended) != 2:
        yield Finding(
            "pair",
            f"It returns a {type(ended).__name__} alone. Return (content, artifact), the artifact "
            "made by completed(...), transient(...), fatal(...) or policy_block(...).",
        )
        return
    content, artifact = ended
    yield from _artifact(tool, artifact)
    yield from _content(tool, content, artifact)


def _artifact(tool: Tool | BaseTool, artifact: object) -> Iterator[Finding]:
    outcome = outcome_read(artifact)
    if outcome is None:
        yield Finding(
            "artifact",
            f"Its artifact cannot be read: {_fault(artifact)}. Make it with completed(...), "
            "transient(...), fatal(...) or policy_block(...).",
        )
        return
    made = attempted(lambda: _made(outcome))
    if isinstance(made, Raised) or attempted(lambda: _survives(artifact)) is not True:
        yield Finding(
            "plain",
            "Its artifact does not come back from storage as it was. Put only text, whole numbers "
            "of 64 bits, true, false, null, lists and dicts with text keys into it, a few levels "
            "deep.",
        )
    elif json.dumps(made, sort_keys=True) != json.dumps(artifact, sort_keys=True):
        yield Finding(
            "artifact",
            f"No constructor makes its artifact: {_made_by_hand(made, artifact)}. Make it with "
            "completed(...), transient(...), fatal(...) or policy_block(...).",
        )
    stops = outcome.reason == "completed" and outcome.stop
    if isinstance(tool, Tool) and stops and not tool.may_stop:
        yield Finding(
            "stop",
            "Its outcome stops the turn, but may_stop is not set, so that the model was never "
            "asked what remains. Set may_stop=True, or return completed(..., stop=False).",
        )


def _fault(artifact: object) -> str:
    """Say what is wrong with an artifact, in the order in which it is read."""
    if not isinstance(artifact, dict):
        return f"it is a {type(artifact).__name__} and no dict"
    faults = (
        (artifact.get("v") != CONTRACT_VERSION, f"its version v is not {CONTRACT_VERSION}"),
        (artifact.get("reason") not in REASONS, f"its reason is none of {', '.join(REASONS)}"),
        (
            not isinstance(artifact.get("stop"), bool),
            "its stop is missing or neither true nor false",
        ),
        (not isinstance(artifact.get("code"), str) or not artifact["code"], "it has no code"),
        (
            not isinstance(artifact.get("already_applied", False), bool),
            "its already_applied is neither true nor false",
        ),
        (not isinstance(artifact.get("data", {}), dict), "its data is no dict"),
    )
    first = next((words for wrong, words in faults if wrong), "")
    return first or "only what is completed can be already_applied"


def _made(outcome: Outcome) -> dict[str, Any]:
    """Return what the constructors make of the same outcome."""
    if outcome.reason == "completed":
        applied = outcome.already_applied
        made = completed(
            outcome.code, stop=outcome.stop, already_applied=applied, data=outcome.data
        )
    else:
        made = _FAILURES[outcome.reason](outcome.code, data=outcome.data)
    return dict(made)


_FAILURES: Final = {"transient": transient, "fatal": fatal, "policy_block": policy_block}


def _made_by_hand(made: Mapping[str, Any], artifact: Any) -> str:
    """Say how what was made by hand differs from what a constructor makes."""
    if made["stop"] is not artifact["stop"]:
        return f"{made['reason']} with stop {str(artifact['stop']).lower()}"
    if odd := sorted(made.keys() ^ artifact.keys()):
        return f"{', '.join(odd)} {'is' if len(odd) == 1 else 'are'} missing or too much"
    changed = ", ".join(key for key in made if made[key] != artifact[key]) or "v"
    return f"its {changed} would be another"


def _survives(artifact: object) -> bool:
    """Tell whether it is the same after JSON, and after storage that restores primitives only."""
    if not _primitive(artifact):
        return False
    serde = JsonPlusSerializer()
    stored = serde.loads_typed(serde.dumps_typed(artifact))
    return bool(json.loads(json.dumps(artifact)) == artifact == stored)


def _primitive(value: object) -> bool:
    """Subclasses (an enum that is a text) come back as something else, and floats are no money."""
    if type(value) is dict:
        return all(type(key) is str and _primitive(item) for key, item in value.items())
    if type(value) is list:
        return all(_primitive(item) for item in value)
    return value is None or type(value) in (str, int, bool)


def _content(tool: Tool | BaseTool, content: object, artifact: object) -> Iterator[Finding]:
    if not isinstance(content, str) or not content.strip():
        yield Finding("content", "It says nothing. Return text that the customer could read.")
        return
    found = _inner(tool, content, artifact)
    if found:
        listed = ", ".join(repr(word) for word in found)
        yield Finding(
            "content",
            f"Its text holds what is not for people: {listed}. Ids, codes and flags belong into "
            "the artifact; the text names things by their references.",
        )


def _inner(tool: Tool | BaseTool, content: str, artifact: object) -> list[str]:
    found = [
        match for pattern in (_UUID, _JSON, _FLAG, _CONTROL) for match in pattern.findall(content)
    ]
    found += _REASON.findall(content)
    code = artifact.get("code") if isinstance(artifact, dict) else None
    names = [code, "tool.failed", "call.invalid", tool.name if "_" in tool.name else None]
    found += [name for name in names if isinstance(name, str) and name and name in content]
    return list(dict.fromkeys(found))


def _short(arguments: Arguments) -> str:
    written = repr(dict(arguments))
    return written if len(written) <= 120 else f"{written[:117]}..."
