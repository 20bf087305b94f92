"""Decide several reviews, each on its own: a refused one neither hides nor stops the others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from reviews.errors import NotFound, ReviewRefused
from reviews.models import Review
from reviews.selectors import review_find
from reviews.services import review_approve, review_reject
from reviews.words import state_sentence

BULK_MOST: Final = 100


@dataclass(frozen=True)
class Result:
    """What became of one review of several."""

    review_id: UUID
    title: str
    accepted: bool
    text: str


def reviews_approve(
    *, items: Sequence[tuple[UUID, int]], actor: User, channel: str
) -> list[Result]:
    """Approve each (review, version seen) as it stands.

    Raises:
        ReviewRefused: more than one rule asked for them; nothing was approved.
    """
    rules_same_or_refuse(pk for pk, _version in items)
    return [_one(pk, version, actor, channel, None) for pk, version in items[:BULK_MOST]]


def rules_same_or_refuse(review_ids: Iterable[UUID]) -> None:
    """Refuse what is to be approved together unless one rule asked for all of it.

    Raises:
        ReviewRefused: more than one did.
    """
    rows = Review.objects.filter(pk__in=list(review_ids)).order_by()
    if rows.values("rule").distinct().count() > 1:
        raise ReviewRefused(
            _(
                "These were asked for by different rules. Choose those of one rule; "
                "nothing was approved."
            )
        )


def reviews_reject(
    *, items: Sequence[tuple[UUID, int]], actor: User, channel: str, sentence: str
) -> list[Result]:
    """Reject each (review, version seen) with the same sentence."""
    return [_one(pk, version, actor, channel, sentence) for pk, version in items[:BULK_MOST]]


def _one(review_id: UUID, version: int, actor: User, channel: str, sentence: str | None) -> Result:
    try:
        if sentence is None:
            review = review_approve(
                review_id=review_id, actor=actor, channel=channel, version=version
            )
        else:
            review = review_reject(
                review_id=review_id,
                actor=actor,
                channel=channel,
                sentence=sentence,
                version=version,
            )
    except NotFound as refusal:
        return Result(review_id, _("A request"), False, str(refusal))
    except ReviewRefused as refusal:
        found = review_find(review_id)
        return Result(review_id, found.title if found else "", False, str(refusal))
    return Result(review_id, review.title, True, state_sentence(review))
