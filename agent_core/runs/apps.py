"""Registers the durable host with Django."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    """The app that owns conversations and runs."""

    name = "agent_core.runs"
    label = "runs"
    verbose_name = "Conversations and runs"
    default_auto_field = "django.db.models.BigAutoField"
