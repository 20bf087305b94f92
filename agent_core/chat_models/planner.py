"""From the messages of a window and the offered tools to a text or calls. Deterministic.

Look-ups come first and together; then what changes something, in one message, so that one
receipt can end the turn. What the person still has to read after it goes into `remaining`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from langchain_core.messages import BaseMessage

from agent_core.chat_models.answers import TOOL_OF, needs_of
from agent_core.chat_models.needs import Need
from agent_core.chat_models.steps import Act, Look, Say, shortened, step_next
from agent_core.chat_models.window import Window, window_read

REMAINING: Final = "remaining"
REWRITING: Final = "Rewrite"

_NO_NEWS: Final = re.compile(
    r"\(|Hello\. I |I did not understand|The last I know|Nothing is under way|"
    r"Nothing was done: I am"
)

ABILITIES: Final = {
    "customer_find": "find a customer",
    "payments_list": "list payments",
    "charge_invoice": "charge an open invoice",
    "refund_request": "ask for a refund",
    "ticket_create": "open a ticket",
    "articles_search": "search the help articles",
    "export_payments": "export payments or refunds",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool that is bound, with the fields of its schema."""

    name: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call the planner wants made."""

    tool: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Either a text or calls."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()


@dataclass(frozen=True, slots=True)
class _Due:
    """One need with the step that is due for it."""

    need: Need
    step: Look | Act | Say


def plan_make(
    messages: Sequence[BaseMessage], offers: Sequence[Offer], *, one_at_a_time: bool = False
) -> Plan:
    """Plan the next message of the assistant."""
    window = window_read(messages)
    if not offers and any(text.startswith(REWRITING) for text in window.system):
        # A planner cannot rewrite, so the text stands as it is.
        return Plan(text=window.words)
    offered = {offer.name: offer.fields for offer in offers}
    needs = needs_of(window)
    due = [_Due(need, _step(need, window, needs, offered)) for need in needs]
    calls = _calls(due, offered, one_at_a_time=one_at_a_time)
    if calls:
        return Plan(calls=calls)
    return Plan(text=_text(due) or _nothing_to_do(offered))


def _step(
    need: Need, window: Window, needs: list[Need], offered: Mapping[str, frozenset[str]]
) -> Look | Act | Say:
    wanted = TOOL_OF.get(need.kind)
    if wanted is None:
        return Say(_plain_answer(need, window, offered))
    step = step_next(need, window, needs)
    if wanted not in offered and not (offered and _asks_all_the_same(step, wanted)):
        return Say(f"I cannot {ABILITIES[wanted]} for you here: “{need.words}” is not done.")
    if isinstance(step, Act) and step.tool == wanted and wanted not in offered:
        return step
    if not isinstance(step, Say) and step.tool not in offered:
        return Say(f"I cannot {ABILITIES[step.tool]} for you here, so “{need.words}” is not done.")
    if isinstance(step, Say):
        return step
    fields = offered[step.tool]
    return replace(step, arguments={k: v for k, v in step.arguments.items() if k in fields})


def _asks_all_the_same(step: Look | Act | Say, wanted: str) -> bool:
    """Tell whether an effect that is not offered is called by its name, as models do now and then.

    The gate refuses it and says why, which tells the person more than silence about a right.
    """
    if isinstance(step, Act):
        return step.tool == wanted and not step.reads
    return isinstance(step, Say) and any(reply.tool == wanted for reply in step.replies)


def _calls(
    due: Sequence[_Due], offered: Mapping[str, frozenset[str]], *, one_at_a_time: bool
) -> tuple[PlannedCall, ...]:
    looks = [each for each in due if _only_reads(each.step)]
    acts = [each for each in due if isinstance(each.step, Act) and not each.step.reads]
    chosen = looks or acts
    if one_at_a_time:
        chosen = [each for each in due if not isinstance(each.step, Say)][:1]
    calls = list(dict.fromkeys(_call(each.step) for each in chosen))
    rest = [each for each in due if each not in chosen and not _is_told(each)]
    if calls and rest and REMAINING in offered.get(calls[-1][0], frozenset()):
        tool, arguments = calls[-1]
        calls[-1] = (tool, (*arguments, (REMAINING, "; ".join(_open(each) for each in rest))))
    return tuple(PlannedCall(tool, dict(arguments)) for tool, arguments in calls)


def _only_reads(step: Look | Act | Say) -> bool:
    return isinstance(step, Look) or (isinstance(step, Act) and step.reads)


def _call(step: Look | Act | Say) -> tuple[str, tuple[tuple[str, str], ...]]:
    if isinstance(step, Say):
        raise TypeError("Words are not a call.")
    return step.tool, tuple(step.arguments.items())


def _is_told(each: _Due) -> bool:
    """Tell whether the person reads this without the model: a tool that may stop said it."""
    if not isinstance(each.step, Say):
        return False
    return not each.step.text or any(not _looks_up(reply.tool) for reply in each.step.replies)


def _looks_up(tool: str) -> bool:
    return tool in ("customer_find", "payments_list")


def _open(each: _Due) -> str:
    """Name what is still open: the request itself, or that its answer is still to be told."""
    return f"tell: {each.need.words}" if isinstance(each.step, Say) else each.need.words


def _text(due: Sequence[_Due]) -> str:
    texts = [each.step.text for each in due if isinstance(each.step, Say)]
    return "\n\n".join(dict.fromkeys(text for text in texts if text))


def _plain_answer(need: Need, window: Window, offered: Mapping[str, frozenset[str]]) -> str:
    match need.kind:
        case "greeting":
            return f"Hello. {_abilities(offered)}"
        case "denied":
            return f"Nothing was done for “{need.words}”."
        case "doubt":
            return (
                f"Nothing was done: I am not sure that “{shortened(need.words)}” is an order for "
                "now; what exactly shall I do?"
            )
        case "foreign":
            return f"I understand English only, so nothing was done. {_abilities(offered)}"
        case "status":
            return _status(window)
        case _:
            return f"I did not understand “{shortened(need.words)}”. {_abilities(offered)}"


def _status(window: Window) -> str:
    """Repeat the newest that the tools or the assistant said; nothing is made up."""
    said = (text.strip() for text in window.earlier if text not in window.staff)
    last = next((text for text in said if text and not _NO_NEWS.match(text)), "")
    waiting = "; ".join(f"“{shortened(words)}”" for words in dict.fromkeys(window.waiting))
    told = [f"The last I know: {last}"] if last else []
    told += [f"Waiting for a person's approval: {waiting}."] if waiting else []
    return "\n".join(told) or "Nothing is under way in this conversation."


def _abilities(offered: Mapping[str, frozenset[str]]) -> str:
    can = [words for tool, words in ABILITIES.items() if tool in offered]
    if not can:
        return "I have no tools here, so I can do nothing for you."
    listed = can[0] if len(can) == 1 else f"{', '.join(can[:-1])} or {can[-1]}"
    return f"I can {listed}. What shall I do?"


def _nothing_to_do(offered: Mapping[str, frozenset[str]]) -> str:
    return f"Hello. {_abilities(offered)}"
