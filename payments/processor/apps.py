"""The Django application of what the processor tells by itself, and of the daily comparison."""

from django.apps import AppConfig


class ProcessorConfig(AppConfig):
    """Webhooks of the processor, and the books of both sides held against each other."""

    name = "payments.processor"
    label = "processor"
    verbose_name = "Payment processor"
    default_auto_field = "django.db.models.BigAutoField"
