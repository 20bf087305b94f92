"""End the reviews of a run that has itself ended: what nobody can use is not left to be decided."""

import logging
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from reviews.audit.services import person, task
from reviews.audit.words import Action
from reviews.models import Review, ReviewDecision
from reviews.recording import review_recorded, standing_of
from reviews.states import Channel, Decision, State

log = logging.getLogger("reviews")


def reviews_close(*, run_id: UUID, withdrawn_by: User | None) -> list[Review]:
    """Withdraw what a run still asks for, or let it expire when nobody took it back.

    In the caller's transaction and before it locks anything else; the host is not told, because it
    is the host that ends the run.
    """
    pending = _pending_hold(run_id)
    # Most runs ask for nothing; their rows are wide.
    closed = list(Review.objects.filter(pk__in=pending).order_by("pk")) if pending else []
    for review in closed:
        review.state = State.WITHDRAWN if withdrawn_by else State.EXPIRED
        review.decided_by = withdrawn_by
        review.decided_at = timezone.now()
        review.save(update_fields=["state", "decided_by", "decided_at"])
        if withdrawn_by is not None:
            ReviewDecision.objects.create(
                review=review,
                actor=withdrawn_by,
                decision=Decision.WITHDRAW,
                accepted=True,
                channel=Channel.CHAT,
            )
        _recorded(review, withdrawn_by)
        log.info("review.closed", extra={"review": str(review.pk), "state": review.state})
    return closed


def _pending_hold(run_id: UUID) -> list[UUID]:
    """Lock what a run still asks for, in the order of the keys."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM reviews_review WHERE run_id = %s AND state = %s ORDER BY id FOR UPDATE",
            [run_id, State.PENDING],
        )
        return [pk for (pk,) in cursor.fetchall()]


def _recorded(review: Review, withdrawn_by: User | None) -> None:
    before = {**standing_of(review), "state": State.PENDING}
    if withdrawn_by is None:
        by, action = task("the end of its run"), Action.REVIEW_EXPIRED
    else:
        by, action = person(withdrawn_by), Action.REVIEW_WITHDRAWN
    review_recorded(action, review, by, before=before)
