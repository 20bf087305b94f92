"""The scripted conversations whose transcripts are golden: what is said, and what people decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.journeys.chat import Chat, approve, exports_pump, reject, settle_pump, withdraw

Step = Callable[[Chat], object]


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation: its steps, who has it, and which offline model answers."""

    steps: tuple[Step, ...]
    style: str = "planner"
    owner: str = "agent"


def say(text: str) -> Step:
    """Write a message."""
    return lambda chat: chat.say(text)


def yes(place: int = 0, *, by: str = "lead", **changes: str) -> Step:
    """Approve the conversation's review at this place, perhaps changed."""
    return lambda chat: approve(chat.reviews()[place], by=by, **changes)


def no(sentence: str, place: int = 0) -> Step:
    """Reject the conversation's review at this place."""
    return lambda chat: reject(chat.reviews()[place], sentence)


def back(place: int = 0) -> Step:
    """Withdraw the conversation's review at this place."""
    return lambda chat: withdraw(chat.reviews()[place])


def settled(chat: Chat) -> object:
    """Let the settle task do its work."""
    return settle_pump()


def written(chat: Chat) -> object:
    """Let the export worker do its work."""
    exports_pump()
    return chat


TWO: Final = "refund 5.00 of PAY-10011 and 3.00 of PAY-10012"
BOTH: Final = "charge INV-1001 and open a ticket about the late delivery"

TALKS: Final[Mapping[str, Talk]] = {
    "find": Talk(
        (
            say("find good-card@example.com"),
            say("what did good-card@example.com pay last month"),
            say("find yen@example.com"),
        )
    ),
    "find-not-found": Talk(
        (say("find other-team@example.com"), say("find INV-1007"), say("charge INV-1007"))
    ),
    "charge": Talk((say("charge INV-1001"), say("charge INV-1001"))),
    "charge-confirmed": Talk(
        (say("charge the open invoice of good-card@example.com"), yes(by="agent")),
        style="one-at-a-time",
    ),
    "charge-slow-committed": Talk((say("charge INV-1002"), say("charge INV-1002"), settled)),
    "charge-slow-lost": Talk((say("charge INV-1003"), settled, say("charge INV-1003"))),
    "charge-declined": Talk((say("charge INV-1004"),)),
    "charge-and-ticket": Talk((say(BOTH),)),
    "charge-and-ticket-one-at-a-time": Talk((say(BOTH),), style="one-at-a-time"),
    "refund-approved": Talk((say("refund 5.00 of PAY-10011 because the box was crushed"), yes())),
    "refund-lowered": Talk((say("refund 20.00 of PAY-10011"), yes(amount="12.00"))),
    "refund-rejected": Talk(
        (say("refund the last payment of good-card@example.com"), no("It arrived in order.")),
        style="one-at-a-time",
    ),
    "refund-two-one-rejected": Talk((say(TWO), yes(1), no("Once is enough."))),
    "refund-and-export": Talk(
        (
            say("refund 5.00 of PAY-10011 and export payments of last month as csv"),
            written,
            yes(),
        )
    ),
    "refund-yen": Talk(
        (say("refund 500.50 JPY of PAY-10061"), say("refund 500 JPY of PAY-10061"), yes())
    ),
    "refund-while-another-waits": Talk(
        (
            say("refund 5.00 of PAY-10011"),
            say("what is the status?"),
            say("refund 38.00 of PAY-10011"),
            back(),
        )
    ),
    "policy-daily-limit": Talk((say("refund PAY-10013"),)),
    "policy-disputed-batch": Talk((say("charge INV-1005 and refund 5.00 of PAY-10051"),)),
    "policy-trainee": Talk((say("refund 5.00 of PAY-10011"),), owner="trainee"),
    "ticket-twice": Talk(
        (
            say("open a ticket about the broken box for PAY-10011"),
            say("open a ticket about the broken box for PAY-10011"),
        )
    ),
    "search": Talk((say("how long does a refund take?"), say("search quantum flux capacitors"))),
    "export": Talk((say("export payments of last month as csv"), written)),
}
