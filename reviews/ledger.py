"""What the pages of reviews must know of customers, amounts and chats, which live in other apps.

Reached through the settings, as the subjects are: `REVIEW_LEDGER`, `REVIEW_LINES`,
`REVIEW_PROGRESS`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.module_loading import import_string

from reviews.models import Review


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a conversation: what kind of speaker, who, when, and the text."""

    role: str
    who: str
    at: datetime
    text: str


class Progress(Protocol):
    """How far an approved effect is, in words; `tone` is good, bad, warn or info."""

    words: str
    reference: str
    tone: str
    final: bool


class Ledger(Protocol):
    """The names and amounts of the app that moves the money."""

    def amount(self, amount_minor: int, currency: str) -> str:
        """Write an amount in the reader's language."""
        ...

    def text(self, text: str, amount_minor: int, currency: str) -> str:
        """Write a stored sentence with this amount as the reader writes it."""
        ...

    def amount_read(self, text: str, currency: str) -> int | None:
        """Read an amount as minor units; None when it is no clear one."""
        ...

    def teams(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Return the names of these teams."""
        ...

    def subjects_found(self, user: User, text: str) -> Collection[UUID]:
        """Return what a search for a customer or a reference means, within the user's reach."""
        ...

    def rule_name(self, rule: str) -> str:
        """Name a rule in a few words."""
        ...

    def record(self, user: User, review: Review) -> tuple[str, str] | None:
        """Return name and address of the record that a review is about, if the user may see it."""
        ...


def ledger() -> Ledger:
    """Return the ledger's answers."""
    return cast("Ledger", import_string(settings.REVIEW_LEDGER)())


def conversation_lines(review: Review) -> Sequence[Line]:
    """Return the conversation in which the review was asked for, without what was taken back."""
    rows = import_string(settings.REVIEW_LINES)(review.conversation_id)
    return [Line(*row) for row in rows]


def words_asked(review: Review) -> str:
    """Return the message from which the request came; empty when it is gone."""
    return cast("str", import_string(settings.REVIEW_WORDS)(review.run_id))


def progress_of(review: Review) -> Progress | None:
    """Return how far the approved effect is; None when nothing was approved."""
    return cast("Progress | None", import_string(settings.REVIEW_PROGRESS)(review))


def amount_of(review: Review) -> str:
    """Write the amount of a review; empty for one without."""
    if review.amount_minor is None:
        return ""
    return ledger().amount(review.amount_minor, review.currency)


def shown_to_reader(review: Review, text: str) -> str:
    """Write a sentence that is stored with a review as its reader writes the amount in it."""
    if review.amount_minor is None:
        return text
    return ledger().text(text, review.amount_minor, review.currency)


def totals_of(reviews: Iterable[Review]) -> list[str]:
    """Write the sum of these reviews, one for each currency."""
    sums: Counter[str] = Counter()
    for review in reviews:
        if review.amount_minor is not None:
            sums[review.currency] += review.amount_minor
    return [ledger().amount(total, currency) for currency, total in sorted(sums.items())]
