"""A desk of plain texts: offers the product's tools by schema and plays a turn with the offline
model, without graph, database or network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from agent_core.chat_models import chat_model

FIELDS: Mapping[str, tuple[str, ...]] = {
    "customer_find": ("key",),
    "payments_list": ("customer", "period"),
    "charge_invoice": ("invoice", "method", "remaining"),
    "refund_request": ("payment", "amount", "reason", "remaining"),
    "ticket_create": ("subject", "body", "payment", "remaining"),
    "articles_search": ("question", "remaining"),
    "export_payments": ("kind", "period", "currency", "format", "remaining"),
}

EFFECTS = {"charge_invoice", "refund_request", "ticket_create", "export_payments"}

Call = tuple[str, dict[str, str]]


def texts_of(statement: str) -> dict[str, str]:
    """Return what each tool answers at a desk whose look-ups find this statement."""
    return {
        "customer_find": statement,
        "payments_list": statement,
        "articles_search": "An article.",
        "charge_invoice": "Charged.",
        "refund_request": "Refunded.",
        "ticket_create": "Opened.",
        "export_payments": "Started.",
    }


def schema(name: str) -> dict[str, Any]:
    """Return the schema of one tool as a provider is sent it."""
    properties = {each: {"type": "string"} for each in FIELDS[name]}
    parameters = {"type": "object", "properties": properties}
    function = {"name": name, "description": name, "parameters": parameters}
    return {"type": "function", "function": function}


@dataclass
class Desk:
    """Plays turns. `texts` maps a tool to its text, or to texts by one argument's value."""

    texts: Mapping[str, str | Mapping[str, str]] = field(default_factory=dict)
    tools: Sequence[str] = tuple(FIELDS)
    style: str = "planner"
    messages: list[BaseMessage] = field(default_factory=list)
    stubs: bool = True

    def ask(self, words: str, *, stop_after: Sequence[str] = ()) -> list[list[Call]]:
        """Play one turn; return the calls of each model message. The answer is in `answer`.

        A batch that holds only tools of `stop_after`, with nothing remaining, ends the turn the
        way the router would.
        """
        self.messages.append(HumanMessage(words))
        model = chat_model(f"offline:{self.style}@0", timeout=5)
        bound = model.bind_tools([schema(name) for name in self.tools])
        batches: list[list[Call]] = []
        for _step in range(12):
            message = bound.invoke(self.messages)
            assert isinstance(message, AIMessage)
            self.messages.append(message)
            if not message.tool_calls:
                return batches
            batches.append([(call["name"], dict(call["args"])) for call in message.tool_calls])
            for call in message.tool_calls:
                text = self._text(call["name"], call["args"])
                self.messages.append(ToolMessage(text, tool_call_id=str(call["id"])))
            if all(name in stop_after and "remaining" not in args for name, args in batches[-1]):
                self.messages.append(AIMessage("(The outcome above was shown.)"))
                return batches
        raise AssertionError("The model went on calling tools.")

    @property
    def answer(self) -> str:
        """Return the assistant's last text."""
        return str(self.messages[-1].text)

    def _text(self, tool: str, arguments: Mapping[str, Any]) -> str:
        text = self.texts[tool]
        if isinstance(text, str):
            return text
        return next(text[str(value)] for value in arguments.values() if str(value) in text)
