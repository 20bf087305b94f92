"""Tickets in the administration: look, close and open again; script stays text."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tests.tickets.conftest import OTHER_TEAM, Context, person
from tickets.models import Ticket
from tickets.tools import ticket_create

LIST = "/admin/tickets/ticket/"
EVIL = "<img src=x onerror=alert(1)>"


def entitled(name: str, *rights: str) -> User:
    """Make somebody with these rights on tickets."""
    user = person(name)
    for right in rights:
        user.user_permissions.add(Permission.objects.get(codename=right))
    return user


def signed_in(user: User) -> Client:
    """Return a browser in which this person is signed in."""
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def ticket(context: Context) -> Ticket:
    """Open a ticket whose every text tries to run."""
    ticket_create(context(), subject=EVIL, body=EVIL)
    return Ticket.objects.get()


def test_b41_script_in_a_ticket_is_text_on_every_page(ticket: Ticket) -> None:
    client = signed_in(entitled("lea", "view_ticket"))
    for address in (LIST, f"{LIST}{ticket.pk}/change/", f"{LIST}{ticket.pk}/history/"):
        shown = client.get(address).content.decode()
        assert EVIL not in shown
        assert "&lt;img src=x onerror=alert(1)&gt;" in shown


def test_who_may_change_closes_and_opens_again_and_is_told_how_many(ticket: Ticket) -> None:
    client = signed_in(entitled("lea", "view_ticket", "change_ticket"))
    posted = {"action": "tickets_close", "_selected_action": [str(ticket.pk)]}
    assert b"1 of 1 moved." in client.post(LIST, posted, follow=True).content
    again = client.post(LIST, posted, follow=True).content.decode()
    assert "0 of 1 moved." in again
    assert f"{ticket.reference} is not in a state" in again
    ticket.refresh_from_db()
    assert ticket.state == "closed"


def test_who_may_only_look_moves_nothing(ticket: Ticket) -> None:
    client = signed_in(entitled("tom", "view_ticket"))
    assert "tickets_close" not in client.get(LIST).content.decode()
    client.post(LIST, {"action": "tickets_close", "_selected_action": [str(ticket.pk)]})
    for address in (f"{LIST}{ticket.pk}/change/", f"{LIST}{ticket.pk}/delete/", f"{LIST}add/"):
        assert client.post(address, {"subject": "x", "post": "yes"}).status_code == 403
    ticket.refresh_from_db()
    assert (ticket.state, ticket.subject) == ("open", EVIL)


def test_another_teams_ticket_is_not_found(ticket: Ticket) -> None:
    olga = entitled("olga", "view_ticket")
    from tests.tickets.conftest import SCOPES

    SCOPES[olga.pk] = frozenset({OTHER_TEAM})
    client = signed_in(olga)
    assert ticket.reference not in client.get(LIST).content.decode()
    assert client.get(f"{LIST}{ticket.pk}/change/").status_code == 302
