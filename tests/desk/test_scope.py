"""Whatever the address and whoever asks: what is somebody else's is not found (B53).

The table is read from the address table, so a new route is tried by itself or fails here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponseBase
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from agent_core.runs.models import Call, Conversation, Event, Message, Run
from desk.urls import urlpatterns
from desk.views.chat import FRAGMENTS
from exports.models import Export
from payments.models import Customer, Payment, Refund, Team
from reviews.models import Review, ReviewDecision
from tests.desk.conftest import Enter, North
from tickets.models import Ticket

OPEN = {"login", "logout", "home", "reviews", "tickets", "articles"}
"""Pages without an object: they need a sign-in (but the first) and show only what is one's own."""

METHODS = ("get", "post")


def _patterns(table: list[Any], space: str = "") -> Iterator[tuple[str, URLPattern]]:
    for entry in table:
        if isinstance(entry, URLResolver):
            name = f"{entry.namespace}:" if entry.namespace else ""
            yield from _patterns(entry.url_patterns, space + name)
        else:
            yield f"{space}{entry.name}", entry


ROUTES = {name: entry.pattern.converters for name, entry in _patterns(urlpatterns)}
SHARED = {"article"}
"""What belongs to nobody: the right alone decides."""

OPERATORS = {name for name in ROUTES if name.startswith("operator")}
"""For operators; `test_operator.py` lets them in."""

GUARDED = sorted(set(ROUTES) - OPEN - SHARED)


@pytest.fixture
def rows(north: North, export: Export) -> dict[str, list[dict[str, Any]]]:
    """Return, for each route with an object, what leads to a row of Tom in Team North."""
    references = ["PAY-7001", "REF-7001", "INV-7001"]
    one: dict[str, Any] = {
        "conversation_id": north.talk.pk,
        "run_id": north.review.run_id,
        "message_id": Run.objects.get(pk=north.review.run_id).message_id,
        "review_id": north.review.pk,
        "export_id": export.pk,
    }
    by_reference = {
        "document": references,
        "document-file": references[:2],
        "ticket": ["TCK-7001"],
        "export": ["EXP-7001"],
    }
    table: dict[str, list[dict[str, Any]]] = {}
    for name, converters in ROUTES.items():
        if name in SHARED:
            table[name] = [{"slug": "refund-times"}]
        elif name in OPEN:
            assert not converters, f"{name} has an object and must be tried as somebody else"
        elif name == "fragment":
            table[name] = [
                {"conversation_id": north.talk.pk, **item} for item in _items(north.talk)
            ]
        elif name in by_reference:
            table[name] = [{"reference": reference} for reference in by_reference[name]]
        else:
            table[name] = [{key: one[key] for key in converters}]
    return table


def _items(talk: Conversation) -> Iterator[dict[str, Any]]:
    run = Run.objects.filter(conversation=talk).order_by("created_at")[0]
    rows = {
        "message": run.message_id,
        "text": run.message_id,
        "call": run.calls.all()[0].pk,
        "review": Review.objects.get().pk,
        "export": Export.objects.get().pk,
        "head": talk.pk,
    }
    for kind in FRAGMENTS:
        yield {"kind": kind, "item_id": rows.get(kind, run.pk)}


def _facts() -> dict[str, Any]:
    models = (Conversation, Message, Run, Call, Event, Review, Export, Ticket, Payment, Refund)
    return {
        model.__name__: list(model._default_manager.order_by("pk").values()) for model in models
    }


def _ask(client: Client, method: str, address: str) -> HttpResponseBase:
    data = {
        "text": "hello",
        "client_key": str(uuid4()),
        "decision": "approve",
        "stop_mode": "polish",
    }
    answer: HttpResponseBase = getattr(client, method)(address, data if method == "post" else None)
    return answer


def _answers(client: Client, name: str, rows: dict[str, Any]) -> set[int]:
    return {
        _ask(client, method, reverse(name, kwargs=kwargs)).status_code
        for kwargs in rows.get(name, [{}])
        for method in METHODS
    }


@pytest.mark.parametrize("who", ["dana", "olga"])
def test_another_teams_people_find_nothing_and_change_nothing(
    who: str, rows: dict[str, Any], enter: Enter, request: Any
) -> None:
    stranger: User = request.getfixturevalue(who)
    before = _facts()
    for name in GUARDED:
        answers = _answers(enter(stranger), name, rows)
        # A method that no view takes says so whoever asks; at least one method is taken.
        assert answers <= {404, 405}, name
        assert 404 in answers, name
    assert _facts() == before
    assert not ReviewDecision.objects.filter(accepted=True).exists()


LEAD_SEES = {"review", "review-card", "run", "api-decision", "document", "document-file", "ticket"}


def test_the_lead_of_the_same_team_finds_no_conversation_but_the_reviews_page(
    rows: dict[str, Any], enter: Enter, maria: User
) -> None:
    before = _facts()
    for name in sorted(set(GUARDED) - LEAD_SEES):
        answers = _answers(enter(maria), name, rows)
        assert answers <= {404, 405}, name
        assert 404 in answers, name
    assert _facts() == before


def test_the_owner_is_let_in_where_others_are_not(
    rows: dict[str, Any], enter: Enter, tom: User
) -> None:
    # A stream has no end; its own test reads the first frames.
    for name in sorted(set(GUARDED) - {"api-stream"} - OPERATORS):
        assert 404 not in _answers(enter(tom), name, rows), name


def test_a_run_bound_to_another_teams_customer_is_not_found_by_the_requesters_lead(
    teams: dict[str, Team], review: Review, enter: Enter, maria: User
) -> None:
    address = reverse("run", args=[review.run_id])
    assert enter(maria).get(address).status_code == 200
    theirs = Customer.objects.create(
        reference="CUS-2", team=teams["South"], name="Bo", email="bo@example.com"
    )
    Conversation.objects.filter(pk=review.conversation_id).update(customer_id=theirs.pk)
    assert enter(maria).get(address).status_code == 404


def test_without_a_sign_in_nothing_is_shown(rows: dict[str, Any], client: Client) -> None:
    before = _facts()
    for name in sorted(set(ROUTES) - {"login", "logout"}):
        for kwargs in rows.get(name, [{}]):
            for method in METHODS:
                answer = _ask(client, method, reverse(name, kwargs=kwargs))
                assert answer.status_code in {302, 401, 405}, name
                if answer.status_code == 302:
                    assert answer.headers["Location"].startswith("/login/"), name
    assert _facts() == before


def test_missing_and_somebody_elses_read_alike(
    rows: dict[str, Any], enter: Enter, dana: User
) -> None:
    client = enter(dana)
    for name in GUARDED:
        for kwargs in rows[name]:
            missing = {
                key: value if key == "kind" else "PAY-0000" if key == "reference" else uuid4()
                for key, value in kwargs.items()
            }
            for method in METHODS:
                theirs = _ask(client, method, reverse(name, kwargs=kwargs))
                nobodys = _ask(client, method, reverse(name, kwargs=missing))
                assert theirs.status_code == nobodys.status_code, name
                assert _text(theirs) == _text(nobodys), name


def _text(answer: HttpResponseBase) -> str:
    body = getattr(answer, "content", b"").decode()
    # The form's token is random by design.
    return "\n".join(line for line in body.splitlines() if "csrfmiddlewaretoken" not in line)


def test_lists_show_only_ones_own(
    talk: Conversation, review: Review, ticket: Ticket, enter: Enter, dana: User
) -> None:
    for name in ("home", "reviews", "tickets"):
        body = enter(dana).get(reverse(name)).content.decode()
        for secret in (str(talk.pk), review.title, ticket.reference, "PAY-7001"):
            assert secret not in body
