"""The worker's tasks: each loads an id and calls one service."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task

from exports import services_sweep, services_write


@shared_task(name="exports.export_write")
def export_write(export_id: str) -> None:
    """Write the file of one export."""
    services_write.export_write(UUID(export_id))


@shared_task(name="exports.exports_sweep")
def exports_sweep() -> None:
    """Put right what workers and time leave behind."""
    services_sweep.exports_sweep()
