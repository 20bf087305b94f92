"""The comparisons, for operators."""

from __future__ import annotations

from payments.processor.models import Reconciliation
from payments.processor.states import Result


def reconciliation_latest() -> Reconciliation | None:
    """Return the latest comparison that came to an end, whoever asked for it."""
    ended = Reconciliation.objects.exclude(result=Result.RUNNING)
    return ended.order_by("-begun_at", "-pk").first()
