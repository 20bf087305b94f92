"""Registers the platform's system checks, and what a forked process forgets."""

from django.apps import AppConfig


class PlatformConfig(AppConfig):
    """The wiring as a Django application; it has no models."""

    name = "config"
    label = "platform"

    def ready(self) -> None:
        """Register the checks, and what happens at a fork."""
        from config import checks, forking  # noqa: F401

        forking.register()
