"""The demo's desk for the suite of tools: all tools, their gate, a lead, and every row there is.

No model and no worker: a call is read from a message, gated, approved if it must be, and done.
"""

from __future__ import annotations

import ast
import builtins
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from uuid import UUID, uuid4

from django.apps import apps
from django.contrib.auth.models import User
from langchain_core.messages import AIMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent_core.chat_models.reading import calls_read
from agent_core.contract import REASONS, Outcome, RunContext, Tool, outcome_read
from agent_core.gate import Gate, Gated
from payments.models import Customer, Payment, PaymentMethod
from payments.selectors import scope_of
from tests.conformance.samples import registered
from tests.house.pages import column, page
from tests.house.tree import PACKAGES, product_modules
from tests.payments.assistant.stage import Conversation, Said

# The boundary cuts there and says how much is missing.
LONGEST_CONTENT: Final = 8_000 + 60
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE
)
_CAMEL: Final = re.compile(r"\b(?:[A-Z][a-z0-9]+){2,}\b")
_PROCESSOR: Final = re.compile(r"\b(?:pi|ch|re|pm|cus|in|evt|tok|req)_\w+")
# A name as programs write it, or a value that only they have.
_PROGRAM: Final = re.compile(r"\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b(?:True|False|null|undefined)\b")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

Rows = dict[str, list[tuple[Any, ...]]]


def rows_now() -> Rows:
    """Return every row of every table of ours but the audit's, which keeps refusals, too."""
    return {
        model._meta.label: sorted(model._default_manager.values_list(), key=repr)
        for model in apps.get_models(include_auto_created=True)
        if model.__module__.split(".")[0] in PACKAGES and model._meta.app_label != "audit"
    }


def changed(before: Rows, after: Rows) -> list[str]:
    """Name the tables whose rows are not the same."""
    return [label for label in before if before[label] != after[label]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One conversation on the demo's data, with the lead who approves."""

    talk: Conversation
    lead: User

    def gated(self, tool: Tool, arguments: Mapping[str, Any], **more: Any) -> Gated:
        """Ask the gate about one call; `more` changes the context, `history` what went before."""
        history = more.pop("history", [])
        call = {"id": str(uuid4()), "position": 0, "tool": tool.name, "arguments": dict(arguments)}
        return Gate(self.talk.toolset, self.talk.context(**more), history).batch([call])[0]

    def allowed(self, tool: Tool, arguments: Mapping[str, Any]) -> tuple[UUID, UUID | None]:
        """Take a call to where it may run; return its id and that of the approval, if it needs one.

        Approving takes no part of the call itself: what is counted afterwards is the tool's.
        """
        if self.gated(tool, arguments).record.verdict != "review":
            return uuid4(), None
        review = self.talk.approved(self.talk.ask(tool.name, **arguments), self.lead)
        return review.call_id, review.pk

    def executed(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        call_id: UUID | None = None,
        review_id: UUID | None = None,
        **more: Any,
    ) -> Said:
        """Run a call through the one boundary."""
        return self.executed_as(self.talk.context(call_id, review_id, **more), tool, arguments)

    def executed_as(self, context: RunContext, tool: Tool, arguments: Mapping[str, Any]) -> Said:
        """Run a call in a context that was made before."""
        message = self.talk.toolset.executed(tool, arguments, context)
        return str(message.content), message.artifact

    def done(self, tool: Tool, arguments: Mapping[str, Any]) -> Said:
        """Do a call from the gate to its end, as the graph does."""
        result = self.gated(tool, arguments).result
        if result is not None:
            return result[0], dict(result[1])
        return self.executed(tool, arguments, *self.allowed(tool, arguments))


def as_read(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as they come out of a model's message."""
    call = {"name": tool.name, "args": dict(arguments), "id": "1", "type": "tool_call"}
    return calls_read(AIMessage(content="", tool_calls=[call]))[0].arguments


def outcome_proved(said: Said) -> Outcome:
    """Return the outcome, after proving that it is one and survives being stored."""
    artifact = said[1]
    outcome = outcome_read(artifact)
    assert outcome is not None, artifact
    assert json.loads(json.dumps(artifact)) == artifact
    serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    assert serde.loads_typed(serde.dumps_typed(artifact)) == artifact
    return outcome


def inner_words(content: str) -> list[str]:
    """Return what a text for people holds of our inner life; nothing is right."""
    found = [sign for sign in "{}\\" if sign in content]
    for pattern in (_UUID, _PROCESSOR, _PROGRAM, _CONTROL):
        found += pattern.findall(content)
    found += [url for url in ("://", "www.", "/admin", "/api") if url in content]
    found += [name for name in names_of_ours() if re.search(rf"\b{re.escape(name)}\b", content)]
    found += [word for word in _CAMEL.findall(content) if word in _CLASSES]
    return found


def out_of_reach(user: User) -> set[str]:
    """Return the names and addresses of the customers whom this person may not know of."""
    customers = Customer.objects.exclude(team_id__in=scope_of(user))
    return {word for pair in customers.values_list("name", "email") for word in pair}


def names_of_ours() -> frozenset[str]:
    """Return the names that no person reads: tools, reasons, codes, the processor's references."""
    references = {
        *PaymentMethod.objects.values_list("processor_ref", flat=True),
        *Payment.objects.values_list("processor_ref", flat=True),
    }
    return _fixed_names() | (references - {""})


@cache
def _fixed_names() -> frozenset[str]:
    codes = {*column(page("docs/codes.md"), "Outcomes"), *column(page("docs/codes.md"), "Errors")}
    # "completed" and "error" are words of people as well; a code has a point in it.
    reasons = set(REASONS) - {"completed"}
    tools = {tool.name for tool in registered()}
    return frozenset(tools | reasons | {code for code in codes if "." in code})


def _classes() -> frozenset[str]:
    ours = {
        item.name
        for path in product_modules()
        for item in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(item, ast.ClassDef)
    }
    return frozenset(ours | set(dir(builtins)))


_CLASSES: Final = _classes()
