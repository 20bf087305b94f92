"""What is said in a chaos run, made from a seed: the same seed gives the same conversations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

Kind = Literal["refund", "charge", "ticket", "export"]
Decision = Literal["approve", "reject", "withdraw", "leave"]

# References of the chaos data begin here, far from those of the sample data.
FIRST: Final = 500_000


@dataclass(frozen=True, slots=True)
class Wish:
    """One effect that a message asks for, and by what it is found again."""

    kind: Kind
    target: str
    amount_minor: int = 0


@dataclass(frozen=True, slots=True)
class Turn:
    """One message and how people behave about it. Times are in seconds after it was sent."""

    number: int
    text: str
    wishes: tuple[Wish, ...]
    decision: Decision = "approve"
    decide_after: float = 0.0
    double_sent: bool = False
    rush: bool = False
    cancel_after: float | None = None
    retried: bool = True


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation about one customer, from its first message to its last."""

    number: int
    turns: tuple[Turn, ...]


def talks_make(seed: str, turns: int, length: int) -> list[Talk]:
    """Return conversations of so many messages each, and so many in all."""
    chance = Random(f"{seed}-talks")  # noqa: S311 - to be repeated, not to be secret
    numbers = range(turns)
    return [
        Talk(start // length, tuple(_turn(chance, number) for number in part))
        for start in range(0, turns, length)
        for part in [numbers[start : start + length]]
    ]


def payment_of(number: int) -> str:
    """Name the payment that belongs to a message; no other message is about it."""
    return f"PAY-{FIRST + number}"


def invoice_of(number: int) -> str:
    """Name the invoice that belongs to a message."""
    return f"INV-{FIRST + number}"


def invoice_amount(number: int) -> int:
    """Return what an invoice is about, in minor units."""
    return 1_000 + number % 5_000


def _turn(chance: Random, number: int) -> Turn:
    text, wishes = _asked(chance, number)
    return Turn(
        number=number,
        text=text,
        wishes=tuple(wishes),
        decision=_decision(chance),
        decide_after=chance.uniform(0.1, 3.0),
        double_sent=chance.random() < 0.1,
        rush=chance.random() < 0.15,
        cancel_after=chance.uniform(0.0, 1.5) if chance.random() < 0.06 else None,
        retried=chance.random() < 0.8,
    )


def _decision(chance: Random) -> Decision:
    found: Sequence[Decision] = chance.choices(
        ("approve", "reject", "withdraw", "leave"), (75, 13, 8, 4)
    )
    return found[0]


def _asked(chance: Random, number: int) -> tuple[str, list[Wish]]:
    kinds = ("refund", "charge", "ticket", "search", "export", "charge and ticket", "refund twice")
    kind = chance.choices(kinds, (34, 18, 14, 10, 8, 10, 6))[0]
    if kind == "refund":
        return _refund(chance, number)
    if kind == "charge":
        return _charge(number)
    if kind == "ticket":
        return _ticket(number)
    if kind == "search":
        return "how do I dispute a chargeback?", []
    if kind == "export":
        first, last = 1 + number % 20, 21 + number % 8
        text = f"export payments from 2026-01-{first:02d} to 2026-03-{last:02d} as CSV"
        return text, [Wish("export", f"2026-01-{first:02d}")]
    first_text, wishes = _charge(number) if kind.startswith("charge") else _refund(chance, number)
    second_text, more = _ticket(number)
    return f"{first_text}, {second_text}", [*wishes, *more]


def _refund(chance: Random, number: int) -> tuple[str, list[Wish]]:
    minor = chance.randint(100, 900)
    payment = payment_of(number)
    text = f"refund {minor // 100}.{minor % 100:02d} EUR of {payment}"
    return text, [Wish("refund", payment, minor)]


def _charge(number: int) -> tuple[str, list[Wish]]:
    invoice = invoice_of(number)
    return f"charge {invoice}", [Wish("charge", invoice, invoice_amount(number))]


def _ticket(number: int) -> tuple[str, list[Wish]]:
    about = f"Parcel number {FIRST + number}"
    return f"open a ticket about {about}", [Wish("ticket", about)]
