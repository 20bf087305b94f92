"""What came of an approved review: looked up in the ledger, never taken from the conversation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core.runs.models import Call
from agent_core.runs.states import RUN_FINAL, CallState, RunState
from payments.models import Intent, Payment, Refund
from payments.states import IntentState, RefundState
from reviews.models import Review
from reviews.states import State

_CALL_OPEN: Final = frozenset({CallState.QUEUED, CallState.RUNNING, CallState.WAITING})
_RUN_ENDED: Final[Mapping[str, Any]] = {
    RunState.CANCELLED: gettext_lazy("the request was stopped before it."),
    RunState.FAILED: gettext_lazy("the request failed before it."),
    RunState.PARKED: gettext_lazy("the request was set aside before it."),
    RunState.DONE: gettext_lazy("the request ended before it."),
}


Step = tuple[str, datetime]
"""What happened, and when."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """How far an approved effect is, and the steps that it has taken."""

    state: str
    words: str
    reference: str
    final: bool
    tone: str
    steps: tuple[Step, ...] = ()


def settlement_of(review: Review) -> Settlement | None:
    """Return how far the approved effect is; None when nothing was approved."""
    if review.state != State.APPROVED:
        return None
    # The call first: one that is over when it is read has its intent by then, if it ever has one.
    call = Call.objects.select_related("run").filter(pk=review.call_id).first()
    of_review = Q(review_id=review.pk) | Q(calls__call_id=review.call_id)
    intent = Intent.objects.filter(of_review).first()
    if intent is None:
        return _without_intent(call)
    refund = Refund.objects.filter(intent=intent).first()
    if refund is not None and intent.state == IntentState.SUCCEEDED:
        found = _of_refund(refund)
    else:
        found = _of_intent(intent)
    return replace(found, steps=_steps(review, intent, refund))


def _of_intent(intent: Intent) -> Settlement:
    reference = _reference(intent.pk)
    if intent.state == IntentState.SUCCEEDED:
        said = _("The processor has confirmed it.")
        return Settlement("succeeded", said, reference, True, "good")
    if intent.state == IntentState.FAILED:
        said = _("The processor refused it. No money moved.")
        return Settlement("failed", said, reference, True, "bad")
    if intent.unknown_at is not None:
        said = _("The processor did not confirm. It is being checked, so nobody is paid twice.")
        return Settlement("unknown", said, reference, False, "warn")
    return Settlement("sending", _("Sent; waiting for the processor."), reference, False, "info")


def _steps(review: Review, intent: Intent, refund: Refund | None) -> tuple[Step, ...]:
    """List what has happened to it, in order, each with its time."""
    failed = intent.state == IntentState.FAILED
    settled = intent.settled_at
    if refund is not None and not failed:
        # What failed before it had settled has both times, and they are one.
        settled = refund.settled_at if refund.settled_at != refund.failed_at else None
    times = (
        (_("Approved"), review.decided_at),
        (_("Sent"), intent.created_at if intent.tries else None),
        (_("Being checked"), intent.unknown_at if intent.state == IntentState.OPEN else None),
        (_("Accepted"), refund.accepted_at if refund is not None else None),
        (_("Settled"), None if failed else settled),
        (_("Failed"), settled if failed else refund.failed_at if refund is not None else None),
    )
    return tuple((label, moment) for label, moment in times if moment is not None)


def _of_refund(refund: Refund) -> Settlement:
    """Say where a refund is that the processor took, and that it came back if it did."""
    if refund.state == RefundState.ACCEPTED:
        said = _("The processor has accepted it; the bank has not confirmed it yet.")
        return Settlement("accepted", said, refund.reference, False, "info")
    if refund.state == RefundState.FAILED:
        said = _(
            "It failed at the bank after the processor had accepted it. The customer does not have "
            "the money, and a ticket is open for it."
        )
        return Settlement("failed_later", said, refund.reference, True, "bad")
    said = _("The processor has confirmed it.")
    return Settlement("succeeded", said, refund.reference, True, "good")


def _without_intent(call: Call | None) -> Settlement:
    """Say that it is about to be sent, or why an approval that nothing came of never will be."""
    if call is None or (call.state in _CALL_OPEN and call.run.state not in RUN_FINAL):
        return Settlement("approved", _("Approved. It is about to be sent."), "", False, "info")
    why = call.content or str(_RUN_ENDED.get(call.run.state, _RUN_ENDED[RunState.DONE]))
    said = _("Approved, but not done: {why}").format(why=why)
    return Settlement("not_done", said, "", True, "bad")


def _reference(intent_id: UUID) -> str:
    for model in (Refund, Payment):
        found = model.objects.filter(intent_id=intent_id).values_list("reference", flat=True)
        if reference := found.first():
            return str(reference)
    return ""
