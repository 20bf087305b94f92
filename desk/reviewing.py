"""What the desk shows of reviews: how many wait, the card in the chat and the reviewer's card."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext as _

from desk.showing import REVIEW_LOOKS, REVIEW_WORDS
from payments.proposals import nothing_to_watch, warnings_now
from reviews import words
from reviews.models import Review
from reviews.policies import decision_refused
from reviews.selectors import reader_of, reviews_visible
from reviews.states import Decision, State

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

    `fresh` asks what waits beside it now, which costs a query.
    """
    pending = review.state == State.PENDING and review.expires_at > timezone.now()
    own = review.requested_by_id == viewer.pk
    look = REVIEW_LOOKS[review.state]
    rows = _rows(review, warnings_now(review) if fresh and pending else review.warnings)
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


def _rows(review: Review, warnings: Sequence[str]) -> list[CardRow]:
    stored, now = " ".join(review.warnings), " ".join(warnings)
    rows = []
    for row in review.card:
        label, text = row["label"], row["text"]
        watch = text == stored if stored else label == _("Watch")
        if watch and warnings != review.warnings:
            text = now or nothing_to_watch()
        rows.append(CardRow(label, text, watch and bool(now)))
    return rows


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
