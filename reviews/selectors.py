"""Reads of reviews: who stands how to them, what waits, and what a subject has waiting."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import (
    Case,
    Exists,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Value,
    When,
)
from django.utils import timezone
from django.utils.module_loading import import_string

from reviews.errors import NotFound
from reviews.models import Review, ReviewDecision
from reviews.policies import Standing, decision_refused
from reviews.states import Decision, State

log = logging.getLogger("reviews")


@dataclass(frozen=True)
class Reader:
    """One person with the rights and teams they have now."""

    user: User
    team_ids: frozenset[UUID]
    may_view: bool
    may_decide: bool
    audits: bool = False

    def covers(self, review: Review) -> bool:
        """Tell whether the review belongs to this person's teams, or to none."""
        return self.user.is_superuser or review.team_id is None or review.team_id in self.team_ids

    def standing(self, review: Review) -> Standing:
        """Return how this person stands to the review."""
        return Standing(
            active=self.user.is_active,
            requester=review.requested_by_id == self.user.pk,
            raised=has_raised(review, self.user.pk),
            in_scope=self.covers(review),
            may_view=self.may_view,
            may_decide=self.may_decide,
            requester_decides=review.requester_decides,
        )


def reader_of(user: User) -> Reader:
    """Read the person anew: a session may be older than the loss of a right."""
    fresh = User.objects.filter(pk=user.pk).first() or User(pk=user.pk, is_active=False)
    scope = import_string(settings.RUN_SCOPE)(fresh) if fresh.is_active else ()
    return Reader(
        user=fresh,
        team_ids=frozenset(cast("Iterable[UUID]", scope)),
        may_view=fresh.has_perm("reviews.view_review"),
        may_decide=fresh.has_perm("reviews.decide_review"),
        audits=fresh.has_perm("audit.view_entry"),
    )


def has_raised(review: Review, user_id: int) -> bool:
    """Tell whether this person raised the amount, in this version or an earlier one."""
    if review.editor_id == user_id:
        return True
    tries = review.decisions.filter(actor_id=user_id, decision=Decision.RAISE, accepted=True)
    return review.version > 1 and tries.exists()


def reviews_for(user: User) -> QuerySet[Review]:
    """List what this person may decide or has asked: pending first, by time left."""
    reader = reader_of(user)
    return _ordered(_mine(reader, reader.may_decide))


def reviews_visible(user: User) -> QuerySet[Review]:
    """List what this person may look at, which people with the view right may without deciding."""
    reader = reader_of(user)
    if reader.audits and not reader.may_decide:
        return _ordered(_all())
    return _ordered(_mine(reader, reader.may_view or reader.may_decide))


def _all() -> QuerySet[Review]:
    return Review.objects.select_related("requested_by", "decided_by", "editor")


def _mine(reader: Reader, with_teams: bool) -> QuerySet[Review]:
    reviews = _all()
    if not reader.user.is_active:
        return reviews.none()
    own = Q(requested_by_id=reader.user.pk)
    if with_teams and reader.user.is_superuser:
        return reviews
    if with_teams:
        own |= Q(team_id__in=reader.team_ids) | Q(team_id__isnull=True)
    return reviews.filter(own)


def _ordered(reviews: QuerySet[Review]) -> QuerySet[Review]:
    waiting = When(state=State.PENDING, then="expires_at")
    return reviews.alias(
        rank=Case(
            When(state=State.PENDING, then=Value(0)), default=Value(1), output_field=IntegerField()
        ),
        due=Case(waiting),
    ).order_by("rank", "due", "-decided_at", "-created_at")


def review_for(user: User, review_id: UUID) -> Review:
    """Open a review as somebody who may decide it or has asked for it; the opening is logged.

    Raises: NotFound for everybody else, as for a missing one.
    """
    reader = reader_of(user)
    review = review_find(review_id)
    fields = {"review": str(review_id), "actor": user.pk}
    if review is None:
        raise NotFound
    standing = reader.standing(review)
    if not standing.sees or not (standing.requester or standing.may_decide):
        log.warning("scope.denied", extra=fields)
        raise NotFound
    log.info("review.opened", extra=fields)
    return review


def review_find(review_id: UUID) -> Review | None:
    """Return a review by its id, whoever asks; callers check the standing."""
    found = Review.objects.select_related("requested_by", "decided_by", "editor")
    return found.filter(pk=review_id).first()


def reviews_of_run(run_id: UUID) -> QuerySet[Review]:
    """List the reviews of a run in the order in which they were asked."""
    return Review.objects.filter(run_id=run_id).order_by("created_at", "id")


def reviews_of_conversation(conversation_id: UUID) -> QuerySet[Review]:
    """List the reviews of a conversation in the order in which they were asked."""
    reviews = Review.objects.select_related("requested_by", "decided_by")
    return reviews.filter(conversation_id=conversation_id).order_by("created_at", "id")


def reviews_waiting(*, kind: str, subject_id: UUID, without_call: UUID | None) -> QuerySet[Review]:
    """List what waits on one subject, oldest first, but for one call's own request."""
    waiting = Review.objects.select_related("requested_by").filter(
        kind=kind, subject_id=subject_id, state=State.PENDING, expires_at__gt=timezone.now()
    )
    if without_call is not None:
        waiting = waiting.exclude(call_id=without_call)
    return waiting.order_by("created_at", "id")


def reviews_unused(*, kind: str, subject_id: UUID, without_call: UUID | None) -> QuerySet[Review]:
    """List what was approved on one subject and is not carried out, oldest first.

    Within the deadline of the request: what was blocked after its approval is never carried out.
    """
    unused = Review.objects.select_related("requested_by").filter(
        kind=kind,
        subject_id=subject_id,
        state=State.APPROVED,
        consumed_at=None,
        expires_at__gt=timezone.now(),
    )
    if without_call is not None:
        unused = unused.exclude(call_id=without_call)
    return unused.order_by("created_at", "id")


def choices_for(user: User, review: Review) -> tuple[tuple[Decision, ...], str]:
    """Return the decisions this person may take now, and why they may not approve, if so."""
    if review.state != State.PENDING or review.expires_at <= timezone.now():
        return (), ""
    standing = reader_of(user).standing(review)
    changeable = bool(review.fields) and not review.requester_decides
    offered = [
        decision
        for decision in Decision
        if decision_refused(standing, decision) is None
        and (changeable or decision not in (Decision.CHANGE, Decision.RAISE))
    ]
    refusal = decision_refused(standing, Decision.APPROVE)
    return tuple(offered), str(refusal) if refusal else ""


def waiting_for(user: User) -> int:
    """Count the pending reviews that this person may approve now, in one query."""
    reader = reader_of(user)
    raised = ReviewDecision.objects.filter(
        review=OuterRef("pk"), actor_id=reader.user.pk, decision=Decision.RAISE, accepted=True
    )
    own = Q(requested_by_id=reader.user.pk)
    mine = _mine(reader, reader.may_decide).filter(
        state=State.PENDING, expires_at__gt=timezone.now()
    )
    to_confirm = Q(requester_decides=True) & own
    to_decide = Q(requester_decides=False) & ~own & ~Exists(raised)
    return mine.filter(to_confirm | to_decide if reader.may_decide else to_confirm).count()
