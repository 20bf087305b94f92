"""What a review is about, as its own app knows it: reached by kind, through the settings."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Protocol, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.module_loading import import_string

from agent_core.policy import ReviewProposal
from reviews.models import Review
from reviews.states import State


@dataclass(frozen=True, slots=True)
class CardNow:
    """The rows of a card, its warnings and flags, with the facts of this moment.

    No flags at all: those stored with the review stay.
    """

    rows: Sequence[Mapping[str, str]]
    warnings: Sequence[str]
    flags: Sequence[Mapping[str, str]] | None = None


class Subject(Protocol):
    """The checks of one kind of review; made anew for each decision, so it reads fresh facts.

    `changed` never has to know whether the reviewer may raise: it says what the proposal would be,
    and reviews compares the amounts.
    """

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Return the proposal with these changes, checked against fresh facts.

        Raises: ChangeRefused with a sentence when the change is none that can be made.
        """
        ...

    def stale(self, review: Review) -> str | None:
        """Say with the fresh figures why this can no longer be approved; None when it can."""
        ...

    def card_now(self, review: Review) -> CardNow:
        """Return the card with the figures and warnings of now; what was asked stays as it is."""
        ...


def subject_of(kind: str) -> Subject | None:
    """Return the checks of a kind; None when nobody registered it, and then nothing can change."""
    path: str | None = settings.REVIEW_SUBJECTS.get(kind)
    return cast("Subject", import_string(path)()) if path else None


def review_now(review: Review) -> Review:
    """Return an open review as it is to be shown: card and warnings of now, stored nowhere.

    One that is over keeps what was stored with it.
    """
    subject = subject_of(review.kind)
    if subject is None or review.state != State.PENDING or review.expires_at <= timezone.now():
        return review
    now, shown = subject.card_now(review), copy(review)
    shown.card = [dict(row) for row in now.rows]
    shown.warnings = list(now.warnings)
    if now.flags is not None:
        shown.flags = [dict(flag) for flag in now.flags]
    return shown
