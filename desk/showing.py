"""How states look: tone, icon and word, as data. A state is never told by colour alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core.runs.states import CallState, RunState
from reviews.states import State


@dataclass(frozen=True, slots=True)
class Look:
    """Tone and icon of a state."""

    tone: str
    icon: str


CALL_LOOKS: Final[Mapping[str, Look]] = {
    CallState.QUEUED: Look("quiet", "clock"),
    CallState.RUNNING: Look("quiet", "dots"),
    CallState.WAITING: Look("warn", "clock"),
    CallState.DONE: Look("good", "check"),
    CallState.REFUSED: Look("warn", "shield"),
    CallState.FAILED: Look("bad", "cross"),
    CallState.UNKNOWN: Look("warn", "question"),
    CallState.CANCELLED: Look("quiet", "stop"),
}

REVIEW_LOOKS: Final[Mapping[str, Look]] = {
    State.PENDING: Look("warn", "clock"),
    State.APPROVED: Look("good", "check"),
    State.REJECTED: Look("bad", "cross"),
    State.WITHDRAWN: Look("quiet", "stop"),
    State.EXPIRED: Look("quiet", "clock"),
}

REVIEW_WORDS: Final[Mapping[str, Any]] = {
    State.PENDING: gettext_lazy("Waiting for approval"),
    State.APPROVED: gettext_lazy("Approved"),
    State.REJECTED: gettext_lazy("Rejected"),
    State.WITHDRAWN: gettext_lazy("Withdrawn"),
    State.EXPIRED: gettext_lazy("Expired"),
}

RUN_LINES: Final[Mapping[str, Any]] = {
    RunState.PENDING: gettext_lazy("In line: it waits until the present request is done."),
    RunState.QUEUED: gettext_lazy("Waiting for a free worker…"),
    RunState.RUNNING: gettext_lazy("Working…"),
    RunState.WAITING: gettext_lazy("Waits for a decision. You can go on writing."),
    RunState.DECIDED: gettext_lazy("Decided; it goes on…"),
}

BUSY: Final = frozenset({RunState.QUEUED, RunState.RUNNING, RunState.DECIDED})

ARGUMENT_WORDS: Final[Mapping[str, Any]] = {
    "customer": gettext_lazy("Customer"),
    "key": gettext_lazy("Looked for"),
    "query": gettext_lazy("Looked for"),
    "payment": gettext_lazy("Payment"),
    "invoice": gettext_lazy("Invoice"),
    "method": gettext_lazy("Paid with"),
    "amount": gettext_lazy("Amount"),
    "reason": gettext_lazy("Reason"),
    "period": gettext_lazy("Period"),
    "title": gettext_lazy("Title"),
    "subject": gettext_lazy("Subject"),
    "text": gettext_lazy("Text"),
    "body": gettext_lazy("Text"),
    "priority": gettext_lazy("Priority"),
    "format": gettext_lazy("Format"),
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of label and text."""

    label: str
    text: str


@cache
def done_words() -> Mapping[str, str]:
    """Return what each tool says once it has done its work, by the tool's name."""
    tools = (tool for path in settings.TOOLSETS for tool in import_string(path))
    return {tool.name: tool.done for tool in tools}


def took(start: datetime | None, end: datetime | None) -> str:
    """Write how long something took; empty while it is not over."""
    if start is None or end is None:
        return ""
    seconds = max(0.0, (end - start).total_seconds())
    if seconds < 60:
        return _("%(seconds).1f s") % {"seconds": seconds}
    minutes, rest = divmod(round(seconds), 60)
    return _("%(minutes)d min %(seconds)d s") % {"minutes": minutes, "seconds": rest}


def bytes_in_words(size: int | None) -> str:
    """Write a file's size."""
    if not size:
        return ""
    if size < 1024:
        return _("%(size)d bytes") % {"size": size}
    if size < 1024 * 1024:
        return _("%(size).1f KB") % {"size": size / 1024}
    return _("%(size).1f MB") % {"size": size / (1024 * 1024)}


def argument_facts(arguments: object) -> list[Fact]:
    """List the arguments that have a word for people, in the order in which they came."""
    if not isinstance(arguments, Mapping):
        return []
    return [
        Fact(str(ARGUMENT_WORDS[name]), value if isinstance(value, str) else str(value))
        for name, value in arguments.items()
        if name in ARGUMENT_WORDS and isinstance(value, str | int) and str(value).strip()
    ]
