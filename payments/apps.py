"""The Django application of the payments."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Register the app under its short name; its words are in DESIGN.md, section 1."""

    name = "payments"
    verbose_name = "Payments"
    default_auto_field = "django.db.models.BigAutoField"
