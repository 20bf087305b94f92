"""End the reviews of a run that has itself ended: what nobody can use is not left to be decided."""

import logging
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from reviews.models import Review, ReviewDecision
from reviews.states import Channel, Decision, State

log = logging.getLogger("reviews")


def reviews_close(*, run_id: UUID, withdrawn_by: User | None) -> list[Review]:
    """Withdraw what a run still asks for, or let it expire when nobody took it back.

    In the caller's transaction and before it locks anything else; the host is not told, because it
    is the host that ends the run.
    """
    pending = Review.objects.select_for_update(of=("self",)).filter(
        run_id=run_id, state=State.PENDING
    )
    closed = list(pending.order_by("pk"))
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
        log.info("review.closed", extra={"review": str(review.pk), "state": review.state})
    return closed
