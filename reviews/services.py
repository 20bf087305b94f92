"""Propose, decide, expire and use reviews. First decision wins by conditional update.

Every try leaves a decision row. An accepted one, and an expiry, is told to the host
(`REVIEW_DECIDED`) inside the transaction that stores it; a raise leaves the review pending, so the
host only shows it. What is final lets the host go on, which enqueues after commit.
"""

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agent_core.errors import ContractBroken
from agent_core.policy import ReviewProposal
from reviews.audit.services import assistant_for
from reviews.audit.words import Action
from reviews.errors import NoRight, ReviewConsumed, ReviewMismatch, ReviewNotApproved
from reviews.models import Review
from reviews.recording import review_recorded
from reviews.selectors import review_find
from reviews.services_deciding import (
    Try,
    approved,
    attempt_decide,
    raised,
    refusal_store,
    rejected,
    review_expire,
    shown,
    withdrawn,
)
from reviews.states import Decision, State

log = logging.getLogger("reviews")


def review_propose(
    *,
    run_id: UUID,
    call_id: UUID,
    conversation_id: UUID,
    requester: User,
    proposal: ReviewProposal,
    arguments: Mapping[str, Any],
    version: int = 1,
) -> Review:
    """Ask for a decision on a call; asking again for the same call and version changes nothing."""
    confirmed = proposal.kind == "charge" and proposal.fields.get("confirm") == "requester"
    row = Review(
        kind=proposal.kind,
        subject_id=proposal.subject_id,
        run_id=run_id,
        call_id=call_id,
        conversation_id=conversation_id,
        version=version,
        proposed_version=version,
        requested_by=requester,
        requester_decides=confirmed,
        team_id=proposal.team_id,
        currency=proposal.currency,
        rule=proposal.rule[:60],
        original=dict(arguments),
        expires_at=timezone.now() + timedelta(hours=settings.REVIEW_HOURS),
        **shown(proposal),
    )
    # A gate that runs again must find its row even after a reviewer moved the version on.
    Review.objects.bulk_create([row], ignore_conflicts=True)
    asked = Review.objects.filter(call_id=call_id)
    found = asked.filter(proposed_version=version).first() or asked.get(version=version)
    if found.pk == row.pk:
        by = assistant_for(requester.pk, requester.get_username())
        review_recorded(Action.REVIEW_PROPOSED, row, by)
    return found


def review_approve(
    *,
    review_id: UUID,
    actor: User,
    channel: str,
    changes: Mapping[str, object] | None = None,
    note: str = "",
    version: int | None = None,
) -> Review:
    """Approve as it stands, or with a lower amount or another reason, in one step.

    `changes` given, however empty, means an approval with changes: without one it is refused.
    `version` is the one the person looked at; without it the present one is meant.

    Raises: NotFound or a ReviewRefused, whose message is for the person; nothing has changed then.
    """
    decision = Decision.APPROVE if changes is None else Decision.CHANGE
    return attempt_decide(
        Try(review_id, actor, channel, decision, changes=changes, note=note, version=version),
        approved,
    )


def review_raise(
    *,
    review_id: UUID,
    actor: User,
    channel: str,
    changes: Mapping[str, object],
    note: str = "",
    version: int | None = None,
) -> Review:
    """Ask for more than was asked: a new version that waits for somebody else.

    Raises: NotFound or a ReviewRefused, whose message is for the person; nothing has changed then.
    """
    return attempt_decide(
        Try(review_id, actor, channel, Decision.RAISE, changes=changes, note=note, version=version),
        raised,
    )


def review_reject(
    *,
    review_id: UUID,
    actor: User,
    channel: str,
    sentence: str,
    note: str = "",
    version: int | None = None,
) -> Review:
    """Refuse with a sentence for the chat and a note that stays inside.

    Raises: NotFound or a ReviewRefused, whose message is for the person; nothing has changed then.
    """
    return attempt_decide(
        Try(review_id, actor, channel, Decision.REJECT, sentence, note=note, version=version),
        rejected,
    )


def review_withdraw(*, review_id: UUID, actor: User, channel: str) -> Review:
    """Take back what one asked for oneself.

    Raises: NotFound or a ReviewRefused, whose message is for the person; nothing has changed then.
    """
    return attempt_decide(Try(review_id, actor, channel, Decision.WITHDRAW), withdrawn)


def review_try_refused(*, review_id: UUID, actor: User, channel: str, decision: Decision) -> None:
    """Store that somebody tried to decide through a page that is not open to them."""
    refusal = NoRight(_("You can see this request but not decide it."))
    refusal_store(Try(review_id, actor, channel, decision), refusal)


def reviews_expire() -> int:
    """End every pending review whose time is over, each on its own; return how many."""
    due = Review.objects.filter(state=State.PENDING, expires_at__lte=timezone.now())
    return sum(review_expire(pk) for pk in due.order_by("expires_at").values_list("pk", flat=True))


def review_consume(*, review_id: UUID, subject_hash: str) -> Review:
    """Use an approval once, for exactly this subject, in the caller's transaction.

    Raises: ReviewNotApproved, ReviewConsumed or ReviewMismatch; the caller must do nothing then.
    """
    if not transaction.get_connection().in_atomic_block:
        raise ContractBroken("An approval is used in the transaction that writes what it allows.")
    used = Review.objects.filter(
        pk=review_id,
        state=State.APPROVED,
        subject_hash=subject_hash,
        consumed_at__isnull=True,
    ).update(consumed_at=timezone.now())
    review = review_find(review_id)
    if used and review is not None:
        by = assistant_for(review.requested_by_id, review.requested_by.get_username())
        review_recorded(Action.REVIEW_USED, review, by)
        return review
    log.warning("review.unusable", extra={"review": str(review_id)})
    if review is None or review.state != State.APPROVED:
        raise ReviewNotApproved
    if review.subject_hash != subject_hash:
        raise ReviewMismatch
    raise ReviewConsumed
