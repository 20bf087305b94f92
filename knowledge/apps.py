"""Help articles and their search."""

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """Help articles and their search."""

    name = "knowledge"
    label = "knowledge"
