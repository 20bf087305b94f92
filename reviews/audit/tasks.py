"""The background work of the audit."""

from celery import shared_task

from reviews.audit.chain import chain_extend


@shared_task(name="audit.chain_extend")
def audit_chain_extend() -> int:
    """Chain what was written since the last tick."""
    return chain_extend()
