"""What the audit keeps of a review: how it stood before and after, and where it belongs."""

from typing import Any, Final

from reviews.audit.services import Actor, Subject, Trail, audit_write
from reviews.audit.words import Action
from reviews.models import Review
from reviews.states import Decision

DECIDED: Final = {
    Decision.APPROVE: Action.REVIEW_APPROVED,
    Decision.CHANGE: Action.REVIEW_CHANGED,
    Decision.RAISE: Action.REVIEW_RAISED,
    Decision.REJECT: Action.REVIEW_REJECTED,
    Decision.WITHDRAW: Action.REVIEW_WITHDRAWN,
}


def standing_of(review: Review) -> dict[str, Any]:
    """Return what a person who looks at the review sees of it."""
    return {
        "state": review.state,
        "version": review.version,
        "title": review.title,
        "amount_minor": review.amount_minor,
        "currency": review.currency,
        "subject": {"kind": review.kind, "id": review.subject_id},
    }


def review_recorded(
    action: Action,
    review: Review,
    actor: Actor,
    *,
    rule: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Write an entry about a review, in the caller's transaction."""
    audit_write(
        action,
        actor=actor,
        subject=Subject("review", review.pk, review.title),
        rule=rule,
        before=before,
        after=standing_of(review) if after is None else after,
        trail=Trail(review.run_id, review.conversation_id, review.call_id),
    )
