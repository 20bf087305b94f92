"""The Django application of exports."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    """Exports: asked for in the chat, written by a worker, fetched by a link."""

    name = "exports"
    label = "exports"
    verbose_name = "Exports"
