"""Settle, every few seconds, what charges and refunds left open."""

from __future__ import annotations

from celery import shared_task

from payments import services


@shared_task(name="payments.intents_settle")
def intents_settle() -> None:
    """Ask again about charges and refunds whose outcome is not known or not final."""
    services.intents_settle()
    services.refunds_look()
