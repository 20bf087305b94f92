"""What came of an approved review: looked up in the ledger, never taken from the conversation."""

from dataclasses import dataclass
from uuid import UUID

from django.utils.translation import gettext as _

from payments.models import Intent, Payment, Refund
from payments.states import IntentState
from reviews.models import Review
from reviews.states import State


@dataclass(frozen=True, slots=True)
class Settlement:
    """How far an approved effect is."""

    state: str
    words: str
    reference: str
    final: bool
    tone: str


def settlement_of(review: Review) -> Settlement | None:
    """Return how far the approved effect is; None when nothing was approved."""
    if review.state != State.APPROVED:
        return None
    intent = Intent.objects.filter(review_id=review.pk).first()
    if intent is None:
        return Settlement("approved", _("Approved. It is about to be sent."), "", False, "info")
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


def _reference(intent_id: UUID) -> str:
    for model in (Refund, Payment):
        found = model.objects.filter(intent_id=intent_id).values_list("reference", flat=True)
        if reference := found.first():
            return str(reference)
    return ""
