"""The pages and the JSON interface."""

from django.apps import AppConfig


class DeskConfig(AppConfig):
    """The pages and the JSON interface."""

    name = "desk"
    label = "desk"
