"""Record that somebody looked at a review, or tried to reach one that they may not."""

from uuid import UUID

from django.contrib.auth.models import User

from reviews.audit.services import Subject, audit_write, person
from reviews.audit.words import Action
from reviews.models import Review
from reviews.recording import review_recorded


def review_viewed(*, review: Review, actor: User, conversation: bool) -> None:
    """Record that a person opened this version, and whether they read the conversation with it."""
    seen = {"version": review.version, "state": review.state, "conversation": conversation}
    review_recorded(Action.REVIEW_VIEWED, review, person(actor), after=seen)


def review_denied(*, review_id: UUID | str, actor: User) -> None:
    """Record a try on what is missing or out of reach: the two take equally long, here, too."""
    audit_write(
        Action.REVIEW_DENIED, actor=person(actor), subject=Subject("review", str(review_id))
    )


def review_touch_refused(*, review: Review, actor: User, tried: str) -> None:
    """Record a try to change or delete a review by hand, which nobody may."""
    review_recorded(
        Action.REVIEW_REFUSED,
        review,
        person(actor),
        rule="review.no_right",
        after={"tried": tried},
    )
