"""Documents written in the background."""

from django.apps import AppConfig


class ExportsConfig(AppConfig):
    """Documents written in the background."""

    name = "exports"
    label = "exports"
