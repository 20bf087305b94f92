"""The Django application of the customers' documents."""

from django.apps import AppConfig


class ReceiptsConfig(AppConfig):
    """Receipts: numbered once, kept as they were issued, printed as HTML and PDF."""

    name = "payments.receipts"
    label = "receipts"
    verbose_name = "Receipts"
    default_auto_field = "django.db.models.BigAutoField"
