"""Registers the platform's system checks."""

from django.apps import AppConfig


class PlatformConfig(AppConfig):
    """The wiring as a Django application; it has no models."""

    name = "config"
    label = "platform"

    def ready(self) -> None:
        """Register the checks."""
        from config import checks  # noqa: F401
