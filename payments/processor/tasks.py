"""What the processor told and nobody handled, and the daily comparison."""

from __future__ import annotations

from celery import shared_task

from payments.processor import services_events, services_reconcile


@shared_task(name="processor.events_sweep")
def events_sweep() -> None:
    """Handle events that a request left, and delete old ones."""
    services_events.events_sweep()


@shared_task(name="processor.reconcile_daily")
def reconcile_daily() -> None:
    """Compare the last whole days, if that has not been done."""
    services_reconcile.reconcile_daily()
