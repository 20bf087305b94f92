"""Tickets of the person's teams: the list and one ticket with its notes."""

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agent_core.runs.selectors import conversations_for
from desk.views.people import person
from tickets.errors import NotFound
from tickets.selectors import ticket_for, tickets_for

LISTED: Final = 100
TONES: Final = {"open": "warn", "pending": "info", "closed": "quiet"}


@never_cache
@login_required
@require_safe
def tickets(request: HttpRequest) -> HttpResponse:
    """List the tickets that this person may see, the newest first."""
    found = tickets_for(person(request))[:LISTED]
    rows = [(ticket, TONES[ticket.state]) for ticket in found]
    return render(request, "desk/tickets.html", {"section": "tickets", "rows": rows})


@never_cache
@login_required
@require_safe
def ticket(request: HttpRequest, reference: str) -> HttpResponse:
    """Show one ticket; its conversation is linked for the one whose it is."""
    viewer = person(request)
    try:
        found = ticket_for(viewer, reference)
    except NotFound:
        raise Http404 from None
    mine = conversations_for(viewer).filter(pk=found.conversation_id).exists()
    return render(
        request,
        "desk/ticket.html",
        {
            "section": "tickets",
            "ticket": found,
            "tone": TONES[found.state],
            "notes": found.notes.select_related("author"),
            "mine": mine,
        },
    )
