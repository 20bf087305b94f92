"""What a person may open, or 404: missing and out of reach are the same page (B53)."""

import logging
from uuid import UUID

from django.contrib.auth.models import User
from django.http import Http404

from agent_core.runs.errors import NotFound as RunNotFound
from agent_core.runs.models import Conversation, Message, Run
from agent_core.runs.selectors import conversation_for, message_for, run_full
from exports.errors import ExportNotFound
from exports.models import Export
from exports.selectors import export_for
from payments.selectors import customer_by_id, scope_of
from reviews.errors import NotFound as ReviewNotFound
from reviews.models import Review
from reviews.selectors import review_for
from reviews.services_viewing import review_denied

log = logging.getLogger("desk")


def conversation_or_404(user: User, conversation_id: UUID) -> Conversation:
    """Return a conversation of this person.

    Raises: Http404 for anyone else's, as for a missing one.
    """
    try:
        return conversation_for(user, conversation_id)
    except RunNotFound:
        raise Http404 from None


def message_or_404(user: User, message_id: UUID) -> Message:
    """Return what this person said in a conversation of theirs.

    Raises: Http404 for anyone else's, as for a missing one.
    """
    try:
        return message_for(user, message_id)
    except RunNotFound:
        raise Http404 from None


def run_or_404(user: User, run_id: UUID) -> Run:
    """Return a run that this person may see in full: their own, or one of their teams throughout.

    Raises: Http404 for any other, as for a missing one.
    """
    try:
        run = run_full(user, run_id)
    except RunNotFound:
        raise Http404 from None
    if run.requester_id != user.pk and not _customer_in_reach(user, run):
        log.warning("scope.denied", extra={"run": str(run_id), "actor": user.pk})
        raise Http404
    return run


def _customer_in_reach(user: User, run: Run) -> bool:
    """Tell whether this person's teams have the run's customer: sharing one with who asked is less.

    The host knows no customers, so this stands here, on top of its own rule.
    """
    customer = run.conversation.customer_id
    if user.is_superuser or customer is None:
        return True
    return customer_by_id(scope_of(user), customer) is not None


def own_run_or_404(user: User, run_id: UUID) -> Run:
    """Return a run in a conversation of this person: the only ones that they may steer.

    Raises: Http404 for any other, as for a missing one.
    """
    run = run_or_404(user, run_id)
    conversation_or_404(user, run.conversation_id)
    return run


def review_or_404(user: User, review_id: UUID) -> Review:
    """Return a review that this person may decide or has asked for; the opening is logged.

    Raises: Http404 for any other, as for a missing one.
    """
    try:
        return review_for(user, review_id)
    except ReviewNotFound:
        review_denied(review_id=review_id, actor=user)
        raise Http404 from None


def export_or_404(user: User, reference: str) -> Export:
    """Return an export of this person by its reference.

    Raises: Http404 for any other, as for a missing one.
    """
    found = Export.objects.filter(reference=reference.upper()).values_list("pk", flat=True).first()
    try:
        if found is None:
            raise Http404
        return export_for(user, found)
    except ExportNotFound:
        raise Http404 from None
