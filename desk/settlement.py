"""What came of an approved review: looked up in the ledger, never taken from the conversation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core.runs.models import Call
from agent_core.runs.states import RUN_FINAL, CallState, RunState
from payments.models import Intent, Payment, Refund
from payments.states import IntentState
from reviews.models import Review
from reviews.states import State

_CALL_OPEN: Final = frozenset({CallState.QUEUED, CallState.RUNNING, CallState.WAITING})
_RUN_ENDED: Final[Mapping[str, Any]] = {
    RunState.CANCELLED: gettext_lazy("the request was stopped before it."),
    RunState.FAILED: gettext_lazy("the request failed before it."),
    RunState.PARKED: gettext_lazy("the request was set aside before it."),
    RunState.DONE: gettext_lazy("the request ended before it."),
}


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
    # The call first: one that is over when it is read has its intent by then, if it ever has one.
    call = Call.objects.select_related("run").filter(pk=review.call_id).first()
    of_review = Q(review_id=review.pk) | Q(calls__call_id=review.call_id)
    intent = Intent.objects.filter(of_review).first()
    if intent is None:
        return _without_intent(call)
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
