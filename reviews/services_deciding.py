"""How one try to decide a review goes: checks, conditional update, decision row, host told.

The steps behind `services`; nothing else calls them. First decision wins: zero rows changed means
that somebody else was first, or that the review is no longer the one that was read.
"""

import logging
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from agent_core import faults
from agent_core.policy import ReviewProposal
from reviews import words
from reviews.audit.services import person, task
from reviews.audit.words import Action
from reviews.changes import (
    Changes,
    changed_proposal,
    changes_checked,
    raises,
    text_checked,
    text_cut,
)
from reviews.errors import (
    AlreadyDecided,
    Changed,
    ChangeRefused,
    Expired,
    NoRight,
    NotFound,
    ReviewRefused,
    Stale,
)
from reviews.models import Review, ReviewDecision
from reviews.policies import decision_refused
from reviews.recording import DECIDED, review_recorded, standing_of
from reviews.selectors import reader_of, review_find
from reviews.states import FINAL, STATE_AFTER, Channel, Decision, State
from reviews.subjects import subject_of

log = logging.getLogger("reviews")


@dataclass(frozen=True)
class Try:
    """One try of one person to decide one review."""

    review_id: UUID
    actor: User
    channel: str
    decision: Decision
    sentence: str = ""
    note: str = ""
    changes: Mapping[str, object] | None = None
    version: int | None = None


def shown(proposal: ReviewProposal) -> dict[str, Any]:
    """Return the columns that a new version replaces."""
    return {
        "subject_hash": proposal.subject_hash,
        "title": proposal.title[:300],
        "button": proposal.button[:120],
        "amount_minor": proposal.amount_minor,
        "card": [dict(row) for row in proposal.card],
        "warnings": list(proposal.warnings),
        "flags": [dict(flag) for flag in proposal.flags],
        "fields": dict(proposal.fields),
    }


def attempt_decide(attempt: Try, step: Callable[[Review, Try], Review]) -> Review:
    """Run one step of a decision in a transaction and keep the try, whatever comes of it.

    Raises: NotFound or a ReviewRefused; then only the row of the try was written.
    """
    try:
        with faults.commit("review.decide", transaction.atomic()):
            return step(_open_to(attempt), attempt)
    except (NotFound, ReviewRefused) as refusal:
        # After the rollback: the row of a refused try must outlive what it refused.
        refusal_store(attempt, refusal)
        if isinstance(refusal, Expired):
            review_expire(attempt.review_id)
        raise


def _open_to(attempt: Try) -> Review:
    """Return the review if this person may decide it so, now."""
    if attempt.channel == Channel.CLI and not settings.DEMO:
        raise NoRight(_("Deciding from the command line exists in the demo only."))
    review = review_find(attempt.review_id)
    if review is None:
        raise NotFound
    _entitled_or_refuse(review, attempt)
    if review.state != State.PENDING or review.expires_at <= timezone.now():
        raise _closed(review)
    if attempt.version is not None and attempt.version != review.version:
        raise _changed(review)
    return review


def _entitled_or_refuse(review: Review, attempt: Try) -> None:
    """Check the person with the rights they have now, against the review as it was read."""
    refusal = decision_refused(reader_of(attempt.actor).standing(review), attempt.decision)
    if refusal is not None:
        raise refusal


def _closed(review: Review) -> ReviewRefused:
    """Say why a review can no longer be decided."""
    if review.state == State.PENDING and review.expires_at > timezone.now():
        return _changed(review)
    if review.state in (State.PENDING, State.EXPIRED):
        return Expired(
            _("This expired on %(when)s and nothing was done. It can be asked for again.")
            % {"when": words.moment(review.expires_at)}
        )
    return AlreadyDecided(words.state_sentence(review), state=review.state)


def _changed(review: Review) -> Changed:
    return Changed(
        _("This request was changed since you opened it. It now reads: %(title)s")
        % {"title": review.title}
    )


def approved(review: Review, attempt: Try) -> Review:
    """Approve what stands, or less."""
    changes = changes_checked(review, attempt.changes)
    if attempt.decision is Decision.CHANGE and not changes:
        raise ChangeRefused(
            _("Nothing was changed. Use “%(button)s” to approve the request as it is.")
            % {"button": review.button}
        )
    values: dict[str, Any] = {}
    if changes:
        proposal = changed_proposal(review, changes, attempt.actor)
        if raises(review, proposal):
            raise ChangeRefused(
                _("That is more than was asked for. Raise it, and somebody else can approve it.")
            )
        values = _next_version(review, proposal, changes)
    _fresh_or_refuse(review, values)
    decision = Decision.CHANGE if changes else Decision.APPROVE
    return _store(review, replace(attempt, decision=decision), values, changes)


def raised(review: Review, attempt: Try) -> Review:
    """Ask for more, as a new version that waits for somebody else."""
    changes = changes_checked(review, attempt.changes)
    if not changes:
        raise ChangeRefused(_("Write a higher amount, or approve the request as it is."))
    proposal = changed_proposal(review, changes, attempt.actor)
    if not raises(review, proposal):
        raise ChangeRefused(_("That is not more than was asked for; approve it with the change."))
    values = _next_version(review, proposal, changes)
    values["editor"] = attempt.actor
    values["expires_at"] = timezone.now() + timedelta(hours=settings.REVIEW_HOURS)
    _fresh_or_refuse(review, values)
    return _store(review, attempt, values, changes)


def rejected(review: Review, attempt: Try) -> Review:
    """Refuse, with a sentence for the chat."""
    return _store(review, attempt, {"sentence": text_checked(attempt.sentence, required=True)}, {})


def withdrawn(review: Review, attempt: Try) -> Review:
    """Take the request back."""
    return _store(review, attempt, {}, {})


def _next_version(review: Review, proposal: ReviewProposal, changes: Changes) -> dict[str, Any]:
    return {
        **shown(proposal),
        "version": review.version + 1,
        "changes": {**review.changes, **changes},
    }


def _fresh_or_refuse(review: Review, values: Mapping[str, Any]) -> None:
    """Check fresh facts against what would be approved, which may be less than was asked."""
    subject = subject_of(review.kind)
    if subject is None:
        return
    candidate = copy(review)
    for name, value in values.items():
        setattr(candidate, name, value)
    sentence = subject.stale(candidate)
    if sentence:
        raise Stale(sentence)


def _store(review: Review, attempt: Try, values: dict[str, Any], changes: Changes) -> Review:
    """Move the review if it is still the one that was read, and store the accepted decision."""
    now, state = timezone.now(), STATE_AFTER[attempt.decision]
    note = text_checked(attempt.note, required=False)
    if state in FINAL:
        values |= {"state": state, "decided_by": attempt.actor, "decided_at": now, "note": note}
    still = Review.objects.filter(
        pk=review.pk, state=State.PENDING, version=review.version, expires_at__gt=now
    )
    if not still.update(**values):
        raise _closed(Review.objects.select_related("decided_by").get(pk=review.pk))
    # The update may have waited for the row. What is committed after this read comes later.
    _entitled_or_refuse(review, attempt)
    ReviewDecision.objects.create(
        review=review,
        actor=attempt.actor,
        decision=attempt.decision,
        accepted=True,
        note=note,
        sentence=values.get("sentence", ""),
        changes=changes,
        channel=attempt.channel,
    )
    log.info("review.decided", extra=_logged(attempt))
    decided = host_tell(review.pk)
    _recorded(attempt, before=review, after=decided, changes=changes)
    return decided


def _recorded(attempt: Try, *, before: Review, after: Review, changes: Changes) -> None:
    review_recorded(
        DECIDED[attempt.decision],
        after,
        person(attempt.actor),
        before=standing_of(before),
        after={
            **standing_of(after),
            "changes": changes,
            "sentence": after.sentence,
            "note": after.note,
            "channel": attempt.channel,
        },
    )


def review_expire(review_id: UUID) -> bool:
    """End one review whose time is over; False when somebody decided first."""
    now = timezone.now()
    with faults.commit("review.expire", transaction.atomic()):
        due = Review.objects.filter(pk=review_id, state=State.PENDING, expires_at__lte=now)
        if not due.update(state=State.EXPIRED, decided_at=now):
            return False
        log.info("review.expired", extra={"review": str(review_id)})
        expired = host_tell(review_id)
        was = {**standing_of(expired), "state": State.PENDING}
        review_recorded(Action.REVIEW_EXPIRED, expired, task("reviews.reviews_expire"), before=was)
    return True


def host_tell(review_id: UUID) -> Review:
    """Tell the host what was decided, in the transaction that stores it.

    A raise too: the review stays pending, but whoever looks at it must see the new amount.
    """
    review = Review.objects.select_related("requested_by", "decided_by").get(pk=review_id)
    import_string(settings.REVIEW_DECIDED)(review)
    return review


def refusal_store(attempt: Try, refusal: NotFound | ReviewRefused) -> None:
    """Keep a refused try, cut to what a row can hold: what was posted may be anything."""
    event = "scope.denied" if isinstance(refusal, NotFound) else "review.refused"
    log.warning(event, extra=_logged(attempt) | {"code": refusal.code})
    with faults.commit("review.refusal", transaction.atomic()):
        review = Review.objects.filter(pk=attempt.review_id).first()
        if review is not None:
            _refusal_write(review, attempt, refusal)


def _refusal_write(review: Review, attempt: Try, refusal: NotFound | ReviewRefused) -> None:
    posted = list((attempt.changes or {}).items())[:10]
    ReviewDecision.objects.create(
        review_id=attempt.review_id,
        actor=attempt.actor,
        decision=attempt.decision,
        accepted=False,
        refused_because=refusal.code,
        note=text_cut(attempt.note),
        sentence=text_cut(attempt.sentence),
        changes={text_cut(name): text_cut(value) for name, value in posted},
        channel=attempt.channel,
    )
    denied = isinstance(refusal, NotFound)
    review_recorded(
        Action.REVIEW_DENIED if denied else Action.REVIEW_REFUSED,
        review,
        person(attempt.actor),
        rule=refusal.code,
        after={"tried": attempt.decision, "version": attempt.version, "channel": attempt.channel},
    )


def _logged(attempt: Try) -> dict[str, object]:
    return {
        "review": str(attempt.review_id),
        "actor": attempt.actor.pk,
        "decision": attempt.decision.value,
        "channel": attempt.channel,
    }
