"""What the desk shows of reviews: how many wait, the card in the chat and the reviewer's card."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext as _

from desk.showing import REVIEW_LOOKS, REVIEW_WORDS
from reviews import words
from reviews.models import Review
from reviews.policies import decision_refused
from reviews.selectors import reader_of, reviews_visible
from reviews.states import Decision, State
from reviews.subjects import review_now

COUNTED = 100
# Why, effect, watch, asked by, reason, customer; what follows says where each value came from.
FACT_ROWS = 6


@dataclass(frozen=True, slots=True)
class Card:
    """One review as a page shows it to one person."""

    review: Review
    tone: str
    icon: str
    state: str
    left: str
    pending: bool
    can_confirm: bool
    can_withdraw: bool
    outcome: str
    rows: list["CardRow"]
    origins: list["CardRow"]


@dataclass(frozen=True, slots=True)
class Refused:
    """A try that was refused: what was pressed, why not, beside which field, and what was typed."""

    decision: str
    sentence: str
    field: str
    typed: Mapping[str, str]

    def typed_in(self, *decisions: str) -> Mapping[str, str]:
        """Return what was typed, if the form of one of these decisions was sent."""
        return self.typed if self.decision in decisions else {}


@dataclass(frozen=True, slots=True)
class CardRow:
    """One row of a card; `watch` marks the one that holds warnings."""

    label: str
    text: str
    watch: bool


def card_of(review: Review, viewer: User, *, fresh: bool = False) -> Card:
    """Return the card; what it offers is checked again by the services when it is pressed.

    `fresh` writes its rows with the facts of now, which costs some queries while it waits.
    """
    pending = review.state == State.PENDING and review.expires_at > timezone.now()
    own = review.requested_by_id == viewer.pk
    look = REVIEW_LOOKS[review.state]
    rows = _rows(review_now(review) if fresh else review)
    return Card(
        review=review,
        tone=look.tone,
        icon=look.icon,
        state=_card_state(review, pending, own),
        left=words.time_left(review),
        pending=pending,
        can_confirm=pending and own and review.requester_decides,
        can_withdraw=pending and own,
        outcome=_outcome(review),
        rows=rows[:FACT_ROWS],
        origins=rows[FACT_ROWS:],
    )


def _rows(review: Review) -> list[CardRow]:
    warnings = " ".join(review.warnings)
    return [
        CardRow(row["label"], row["text"], bool(warnings) and row["text"] == warnings)
        for row in review.card
    ]


def _card_state(review: Review, pending: bool, own: bool) -> str:
    if pending and own and review.requester_decides:
        return _("Waiting for you to confirm")
    if review.state == State.PENDING and not pending:
        return str(REVIEW_WORDS[State.EXPIRED])
    return str(REVIEW_WORDS[review.state])


def _outcome(review: Review) -> str:
    if review.state == State.PENDING:
        return ""
    said = words.state_sentence(review)
    return f"{said} {_('They wrote:')} “{review.sentence}”" if review.sentence else said


def open_for(viewer: User) -> list[Review]:
    """List the pending reviews that this person may approve now, with one look at their rights."""
    reader = reader_of(viewer)
    waiting = reviews_visible(viewer).filter(state=State.PENDING, expires_at__gt=timezone.now())
    return [
        review
        for review in waiting[:COUNTED]
        if decision_refused(reader.standing(review), Decision.APPROVE) is None
    ]
