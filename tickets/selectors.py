"""Reads of tickets, within the teams of whoever asks."""

import logging
from collections.abc import Iterable
from typing import cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from tickets.errors import NotFound
from tickets.models import Ticket

log = logging.getLogger("tickets")


def tickets_for(user: User) -> QuerySet[Ticket]:
    """List the tickets of the person's teams and their own, the newest first."""
    tickets = Ticket.objects.select_related("requester")
    if not user.is_active:
        return tickets.none()
    if user.is_superuser:
        return tickets
    teams = cast("Iterable[UUID]", import_string(settings.RUN_SCOPE)(user))
    return tickets.filter(Q(team_id__in=list(teams)) | Q(requester=user))


def ticket_for(user: User, reference: str) -> Ticket:
    """Return one ticket by its reference.

    Raises: NotFound for a missing one and for one out of scope alike; the latter is logged.
    """
    key = reference.strip().upper()
    ticket = tickets_for(user).filter(reference=key).first()
    if ticket is not None:
        return ticket
    if Ticket.objects.filter(reference=key).exists():
        log.warning("scope.denied", extra={"ticket": key, "actor": user.pk})
    raise NotFound(_("There is no such ticket."))
