"""The Django application of the audit."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """The audit: rows that are only ever added, and the chain over them."""

    name = "reviews.audit"
    label = "audit"
    verbose_name = "Audit"

    def ready(self) -> None:
        """Listen to sign-ins, which Django tells by signals only."""
        from reviews.audit import signing

        signing.listen()
