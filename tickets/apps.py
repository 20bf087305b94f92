"""Tickets and their notes."""

from django.apps import AppConfig


class TicketsConfig(AppConfig):
    """Tickets and their notes."""

    name = "tickets"
    label = "tickets"
