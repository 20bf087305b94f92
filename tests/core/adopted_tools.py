"""Tools as an adopter could have them: good ones, and one for each way to break the contract."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Annotated, Any
from uuid import uuid4

from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, model_validator

from agent_core.contract import RunContext, Tool, completed, fatal
from agent_core.errors import StaleAttempt
from agent_core.policy import Proposal, Verdict, allow

Run = Callable[..., Any]

_ticks = count()


def _identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    return str(arguments["order"])


def cancel(context: RunContext, *, order: Annotated[str, "The number of the order."]) -> Any:
    """Cancel an order that has not been sent."""
    if order.startswith("SENT"):
        return f"Order {order} was sent already.", fatal("order.sent")
    return f"Order {order} is cancelled.", completed("order.cancelled", stop=True)


def _tool(name: str, run: Run = cancel, **more: Any) -> Tool:
    kept = {
        "doing": "Cancelling the order",
        "done": "Cancelled the order",
        "right": "orders.cancel",
        "effect": True,
        "may_stop": True,
        "policies": (allow,),
        "identity": _identity,
    }
    return Tool(name=name, run=run, **{**kept, **more})


def _ending(content: object, artifact: object) -> Run:
    def run(context: RunContext, *, order: Annotated[str, "The number of the order."]) -> Any:
        """End in one certain way."""
        return content, artifact

    return run


DONE = completed("order.cancelled", stop=True)
LOOKED_UP = completed("order.found", stop=False)


def _status(order: str) -> tuple[str, Any]:
    """Look up where an order is."""
    return f"Order {order} is on its way.", LOOKED_UP


def _langchain(name: str = "status", **more: Any) -> BaseTool:
    kept: dict[str, Any] = {
        "description": "Look up where an order is.",
        "response_format": "content_and_artifact",
        "args_schema": {
            "type": "object",
            "properties": {"order": {"type": "string", "description": "The number."}},
            "required": ["order"],
        },
    }
    return StructuredTool(name=name, func=more.pop("func", _status), **{**kept, **more})


ALONE = _tool("cancel_order")
LOOK_UP = _langchain("status_of")
TOOLS = [ALONE, LOOK_UP]
EXAMPLES = {
    "cancel_order": [{"order": "A-1"}, {"order": "SENT-2"}],
    "status_of": [{"order": "A-1"}],
}
ONE = {"cancel_order": [{"order": "A-1"}]}
NO_TOOLS: list[Tool] = []
TEXT = "cancel_order"
STRANGERS = {"refund": [{"order": "A-1"}]}
ODD_EXAMPLES = {"cancel_order": {"order": "A-1"}}


def context_of_their_own() -> RunContext:
    """Return someone who speaks German."""
    return RunContext(
        run_id=uuid4(),
        attempt=1,
        conversation_id=uuid4(),
        requester_id=7,
        requester_name="Adopter",
        rights=frozenset({"orders.cancel"}),
        team_ids=frozenset(),
        language="de",
    )


def _in_german(context: RunContext, *, order: Annotated[str, "The number of the order."]) -> Any:
    """Cancel an order for someone who speaks German."""
    if context.language != "de":
        raise LookupError(context.language)
    return f"Bestellung {order} ist storniert.", DONE


def context_that_raises() -> RunContext:
    """Raise, as a function that reads a missing setting does."""
    raise KeyError("tenant")


def context_of_nothing() -> None:
    """Return nothing, as a function that forgot its return does."""


def _broken_off() -> Iterator[Tool]:
    yield ALONE
    raise LookupError("half a list")


BROKEN_OFF = _broken_off()
LOST = {"cancel_order": [{"order": "A-1"}, {"order": "LOST"}]}
LOST_ONLY = {"cancel_order": [{"order": "LOST"}]}


GERMAN = [_tool("cancel_order", _in_german)]


def _returning_directly() -> BaseTool:
    """A house rule finds whoever writes that flag down, so it is put together here."""
    flag: dict[str, Any] = {"return_" + "direct": True}
    return _langchain(**flag)


# One bad tool for each check, by the name of the check


def _without_words(context: RunContext, *, order: Annotated[str, "The number."]) -> Any:
    return "Done.", DONE


def _silent_argument(context: RunContext, *, order: str) -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _open(context: RunContext, *, remaining: Annotated[str, "What is left."]) -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _configured(context: RunContext, *, config: Annotated[str, "How to do it."]) -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _untyped(context, *, order):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _unbuildable(context: RunContext, *, order: Annotated[Nowhere, "What."]) -> Any:  # type: ignore[name-defined] # noqa: F821
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _without_context() -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _anything(context: RunContext, **order: Any) -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", DONE


def _raising(context: RunContext, *, order: Annotated[str, "The number of the order."]) -> Any:
    """Cancel an order that has not been sent."""
    raise KeyError(order)


def _raises(error: BaseException) -> Run:
    def run(context: RunContext, *, order: Annotated[str, "The number of the order."]) -> Any:
        """End by an error that is none of the tool's business."""
        raise error

    return run


def _refused_by_a_constructor(
    context: RunContext, *, order: Annotated[str, "The number of the order."]
) -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", completed("order.cancelled", stop=True, data={"fee": 4.5})


def _raising_for_some(
    context: RunContext, *, order: Annotated[str, "The number of the order."]
) -> Any:
    """Cancel an order, and leave to the boundary what nobody has thought of."""
    if order == "LOST":
        raise OSError("socket")
    return f"Order {order} is cancelled.", DONE


SOME_RAISE = [_tool("cancel_order", _raising_for_some)]


class _Crossed(BaseModel):
    @model_validator(mode="before")
    @classmethod
    def check(cls, value: object) -> object:
        raise RuntimeError(f"no check of {value}")


def _checked_badly(context: RunContext, *, order: Annotated[_Crossed, "The number."]) -> Any:
    """Cancel an order that has not been sent."""
    return "Done.", DONE


CHECKED_BADLY = [_tool("cancel_order", _checked_badly)]


def _holding_itself() -> dict[str, Any]:
    artifact: dict[str, Any] = {**DONE, "data": {}}
    artifact["data"]["artifact"] = artifact
    return artifact


def _text_alone(context: RunContext, *, order: Annotated[str, "The number of the order."]) -> Any:
    """Cancel an order that has not been sent."""
    return "Done."


def _dividing(order: str) -> tuple[str, Any]:
    return f"Order {1 // 0}.", LOOKED_UP


def _with_a_dict_of_its_own(order: str) -> tuple[str, Any]:
    return f"Order {order} is on its way.", {"status": "ok"}


def _lost(context: RunContext, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    raise LookupError(arguments["order"])


def _leaving(context: RunContext, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    sys.exit(0)


def _barred(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
    return Verdict(kind="block", rule="order.barred", text="policy_block: not allowed.")


def _changing(context: RunContext, arguments: Mapping[str, Any]) -> str:
    return f"{arguments['order']} {next(_ticks)}"


class Reason(str):
    """A text that comes back from storage as another type."""

    __slots__ = ()


def spoiled(**changed: object) -> Tool:
    return _tool("cancel_order", _ending("Done.", {**DONE, **changed}))


def _saying(content: object) -> Tool:
    return _tool("cancel_order", _ending(content, DONE))


BAD: dict[str, list[Any]] = {
    "kind": [cancel],
    "twice": [_tool("cancel_order"), _tool("cancel_order")],
    "name": [_tool("cancel order")],
    "description": [_tool("cancel_order", _without_words), _langchain(description="Status.")],
    "argument": [_tool("cancel_order", _silent_argument)],
    "words": [
        _tool("cancel_order", done="Cancelling the order"),
        _tool("cancel_order", done="Did cancel_order"),
        _tool("cancel_order", doing=" "),
    ],
    "right": [_tool("cancel_order", right="")],
    "signature": [
        _tool("cancel_order", _without_context),
        _tool("cancel_order", _anything),
        _tool("cancel_order", dict),
    ],
    "remaining": [_tool("cancel_order", _open)],
    "reserved": [_tool("cancel_order", _configured)],
    "schema": [_tool("cancel_order", _untyped), _tool("cancel_order", _unbuildable)],
    "direct": [_returning_directly()],
    "response_format": [_langchain(response_format="content")],
    "errors_as_text": [
        _langchain(handle_tool_error=True),
        _langchain(handle_validation_error="Try again."),
    ],
    "example": [replace(_tool("cancel_order"), run=_ending("Done.", DONE))],
    "gate": [
        _tool("cancel_order", facts=_lost),
        _tool("cancel_order", identity=_lost),
        _tool("cancel_order", facts=_leaving),
    ],
    "identity": [
        _tool("cancel_order", identity=_changing),
        _tool("cancel_order", identity=lambda _context, _arguments: " "),
    ],
    "raises": [_tool("cancel_order", _raising), _langchain(func=_dividing)],
    "ends": [
        _tool("cancel_order", _raises(SystemExit(0))),
        _tool("cancel_order", _raises(StaleAttempt())),
    ],
    "contract": [_tool("cancel_order", _refused_by_a_constructor)],
    "pair": [_tool("cancel_order", _text_alone)],
    "artifact": [
        _tool("cancel_order", _ending("Done.", None)),
        _tool("cancel_order", _ending("Done.", "completed")),
        spoiled(v=2),
        spoiled(reason="success"),
        spoiled(stop="yes"),
        spoiled(code=""),
        spoiled(already_applied=1),
        spoiled(data=[]),
        spoiled(reason="fatal", already_applied=True),
        spoiled(reason="transient"),
        spoiled(reason="fatal", stop=False),
        spoiled(reason="policy_block", stop=False),
        spoiled(v=True),
        spoiled(status="ok"),
        _langchain(func=_with_a_dict_of_its_own),
    ],
    "plain": [
        spoiled(data={"order": uuid4()}),
        spoiled(data={"orders": ("A-1", "A-2")}),
        spoiled(data={1: "A-1"}),
        spoiled(data={"amount": 5.5}),
        spoiled(reason=Reason("completed")),
        spoiled(data={"amount": 2**70}),
        _tool("cancel_order", _ending("Done.", _holding_itself())),
    ],
    "stop": [_tool("cancel_order", may_stop=False)],
    "content": [
        _saying(""),
        _saying(["Done."]),
        _saying("Order 1b4e28ba-2fa1-11d2-883f-0016d3cca427 is cancelled."),
        _saying('{"order": "A-1"}'),
        _saying("Done: order.cancelled"),
        _saying("The outcome was fatal."),
        _saying("Done. stop=true"),
        _saying("Done. STOP"),
        _saying("Done.\x1b[0m"),
        _saying("cancel_order was called."),
        _tool("cancel_order", policies=(_barred,)),
    ],
}
"""What a tool of each list breaks. Several stand for the several ways to break one check."""


def bad_tool(check: str, at: int) -> list[Any]:
    """Return the tools of one report: the one bad tool, or both of two that clash."""
    return BAD[check] if check == "twice" else [BAD[check][at]]
