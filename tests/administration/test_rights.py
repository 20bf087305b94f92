"""Who gets where in the administration: every route of every model, by role, against one table.

A model or a route that is new has no line here and fails until somebody has decided who gets there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid4

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.messages import get_messages
from django.db import connection
from django.test import Client
from django.urls import URLPattern, reverse

from agent_core.runs.models import Message
from payments.roles import roles_setup
from reviews.audit.models import Entry
from reviews.models import Review
from reviews.states import Decision
from tests.administration.world import DECLINE, SECRET, Rows, browser_of, person_of, rows_of

pytestmark = pytest.mark.django_db

NOBODY: Final[frozenset[str]] = frozenset()
SUPER: Final = frozenset({"superuser"})
AUDIT: Final = SUPER | {"auditor"}
RECORDS: Final = AUDIT | {"administrator"}
TEAM: Final = RECORDS | {"lead"}
EVERYBODY: Final = TEAM | {"agent", "trainee"}
ROLES: Final = (*sorted(EVERYBODY), "operator")

SEES: Final = {
    "audit.entry": AUDIT,
    "auth.group": AUDIT,
    "auth.user": AUDIT,
    "exports.export": AUDIT,
    "knowledge.article": EVERYBODY,
    "payments.customer": EVERYBODY,
    "payments.intent": TEAM,
    "payments.invoice": RECORDS,
    "payments.pause": RECORDS,
    "payments.payment": RECORDS,
    "payments.paymentmethod": RECORDS,
    "payments.refund": RECORDS,
    "payments.team": RECORDS,
    "reviews.review": TEAM | {"trainee"},
    "runs.conversation": TEAM,
    "runs.run": TEAM,
    "tickets.ticket": RECORDS,
}
"""Who may look at the rows of a model; everybody else is refused on every route of it."""

WRITES: Final = {
    "auth.group": SUPER,
    "auth.user": SUPER,
    "knowledge.article": SUPER,
    "payments.team": SUPER,
}
"""Who may add and change rows. Nothing else in the administration is written by hand."""

DELETES: Final = {"auth.group": SUPER, "auth.user": SUPER, "knowledge.article": SUPER}
UNSCOPED: Final = {
    "audit.entry",
    "auth.group",
    "auth.user",
    "exports.export",
    "knowledge.article",
    "payments.pause",
    "payments.team",
}
"""Rows that belong to no team: whoever may look at one may look at all."""

SEES_ALL_TEAMS: Final = AUDIT
DECIDES: Final = frozenset({"administrator", "lead", "superuser"})
READS_DECLINES: Final = DECIDES
ROUTES: Final = {"changelist", "add", "history", "delete", "change", "decide", "password_change"}
KEPT: Final = ("audit_", "django_session", "reviews_reviewdecision")
"""Tables that a try may write into: it is kept."""


@pytest.fixture
def north(db: None) -> Rows:
    """Return the team of whoever is tested."""
    roles_setup()
    return rows_of("NORTH")


@pytest.fixture
def south(north: Rows) -> Rows:
    """Return another team."""
    return rows_of("SOUTH")


def labels() -> list[str]:
    """Return the models of the administration that this table is about."""
    return sorted(model._meta.label_lower for model in admin.site._registry)


def test_every_model_of_the_administration_stands_in_the_table() -> None:
    # What a later piece of work registers is decided here, by one line each.
    assert set(labels()) - set(SEES) <= ELSEWHERE
    assert set(SEES) <= set(labels())


ELSEWHERE: Final = {"receipts.document", "processor.reconciliation", "processor.processorevent"}
"""Tested with their own apps, and for their lists below."""


def test_every_route_of_the_administration_is_one_that_is_walked() -> None:
    found = set()
    for model, page in admin.site._registry.items():
        app, name = model._meta.app_label, model._meta.model_name
        for route in _patterns(page):
            if route.name is not None:
                found.add(route.name.removeprefix(f"{app}_{name}_"))
    assert found == ROUTES


def _patterns(page: Any) -> Iterator[URLPattern]:
    yield from page.urls


def state_of_everything() -> dict[str, tuple[int, str]]:
    """Return count and hash of every table but those that keep tries."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if not table.startswith(KEPT):
                cursor.execute(f'SELECT t::text FROM "{table}" t ORDER BY 1')  # noqa: S608
                rows = [row for (row,) in cursor.fetchall()]
                digest = hashlib.sha256("\n".join(rows).encode()).hexdigest()
                found[table] = (len(rows), digest)
    return found


def address(label: str, route: str, *args: Any) -> str:
    """Return where a page is."""
    return reverse(f"admin:{label.replace('.', '_')}_{route}", args=args)


@pytest.fixture(params=ROLES)
def walker(request: pytest.FixtureRequest, north: Rows, south: Rows) -> tuple[str, Client]:
    """Sign somebody of each role in, a member of the team North."""
    role = str(request.param)
    return role, browser_of(person_of(role, north.team))


def test_every_role_gets_where_the_table_says_and_nobody_changes_a_thing(
    walker: tuple[str, Client], north: Rows, south: Rows
) -> None:
    role, client = walker
    before = state_of_everything()
    for label in SEES:
        sees, writes = role in SEES[label], role in WRITES.get(label, NOBODY)
        shown = client.get(address(label, "changelist"))
        assert shown.status_code == (200 if sees else 403), label
        _secrets(role, shown)
        add = address(label, "add")
        assert client.get(add).status_code == (200 if writes else 403), label
        assert client.post(add, {}).status_code == (200 if writes else 403), label
        moves = label == "tickets.ticket" and role == "superuser"
        _actions(client, label, [north, south], sees=sees, moves=moves)
        if label in north.of:
            _own(client, role, label, north.of[label])
            _others(client, role, label, south.of[label])
    assert state_of_everything() == before


def _own(client: Client, role: str, label: str, row: Any) -> None:
    sees, writes = role in SEES[label], role in WRITES.get(label, NOBODY)
    for route in ("change", "history"):
        shown = client.get(address(label, route, row.pk))
        # What one may not look at is refused, or as if it were not there.
        assert shown.status_code in ((200,) if sees else (302, 403)), (label, route)
        _secrets(role, shown)
    posted = {"name": "", "username": "", "state": "approved", "amount_minor": "1"}
    changed = client.post(address(label, "change", row.pk), posted)
    assert changed.status_code == (200 if writes else 403), label
    for method in (client.get, client.post):
        # No word of "yes" in what is posted: whoever may delete is asked first.
        refused = method(address(label, "delete", row.pk))
        assert refused.status_code == (200 if role in DELETES.get(label, NOBODY) else 403), label
    if not writes:
        assert b'name="_save"' not in client.get(address(label, "change", row.pk)).content


def _others(client: Client, role: str, label: str, row: Any) -> None:
    """Another team's row is as one that is not there."""
    if label in UNSCOPED or role in SEES_ALL_TEAMS or role not in SEES[label]:
        return
    assert str(row.pk) not in client.get(address(label, "changelist")).content.decode(), label
    for other in (row.pk, uuid4()):
        shown = client.get(address(label, "change", other))
        assert shown.status_code in (302, 404), label
        assert client.get(address(label, "history", other)).status_code in (302, 404), label
        assert client.post(address(label, "change", other), {}).status_code in (302, 403, 404)
        assert client.post(address(label, "delete", other), {}).status_code in (302, 403, 404)


def _actions(client: Client, label: str, teams: list[Rows], *, sees: bool, moves: bool) -> None:
    """Post every action that any page of the administration has, by hand."""
    named = {"delete_selected"}
    for page in admin.site._registry.values():
        named |= {one if isinstance(one, str) else one.__name__ for one in page.actions or ()}
    rows = [str(team.of[label].pk) for team in teams if label in team.of]
    for action in sorted(named):
        posted = {"action": action, "_selected_action": rows}
        if label in WRITES or moves:
            # Whoever may do it would: nothing is chosen, so that the page alone is asked.
            posted.pop("_selected_action")
        answer = client.post(address(label, "changelist"), posted)
        assert answer.status_code in ((200, 302, 403) if sees else (403,)), (label, action)


def _secrets(role: str, shown: Any) -> None:
    text = shown.content.decode()
    assert SECRET not in text
    if role not in READS_DECLINES:
        assert DECLINE not in text


def test_the_decline_code_stands_on_the_page_for_those_with_the_right(
    walker: tuple[str, Client], north: Rows
) -> None:
    role, client = walker
    page = client.get(address("payments.intent", "change", north.of["payments.intent"].pk))
    assert (DECLINE in page.content.decode()) is (role in READS_DECLINES)


@pytest.mark.parametrize("decision", Decision.values)
def test_only_who_may_decide_gets_through_with_a_decision_made_by_hand(
    walker: tuple[str, Client], north: Rows, south: Rows, decision: str
) -> None:
    role, client = walker
    before = state_of_everything()
    other = address("reviews.review", "decide", south.of["reviews.review"].pk, decision)
    posted = {"version": "9", "sentence": "No.", "amount": "1.00"}
    if role != "superuser":
        assert client.post(other, posted).status_code in (403, 404)
    own = address("reviews.review", "decide", north.of["reviews.review"].pk, decision)
    answer = client.post(own, posted)
    # Whoever may decide is told that this is not the version that stands, or whose it is.
    assert answer.status_code in ((403, 422) if role in DECIDES else (403, 404)), role
    assert client.get(own).status_code == 405
    assert state_of_everything() == before


def test_the_look_up_routes_give_no_more_than_the_lists(
    walker: tuple[str, Client], north: Rows, south: Rows
) -> None:
    role, client = walker
    asked = {"app_label": "payments", "model_name": "payment", "field_name": "customer"}
    found = client.get(reverse("admin:autocomplete"), asked)
    assert found.status_code == (200 if role in SEES["payments.customer"] else 403)
    if role not in SEES_ALL_TEAMS:
        assert b"SOUTH" not in found.content
    secret = asked | {"model_name": "refund", "field_name": "intent"}
    if role not in SEES["payments.intent"]:
        assert client.get(reverse("admin:autocomplete"), secret).status_code == 403
    for label in ("payments.payment", "auth.user"):
        app, model = label.split(".")
        kind = ContentType.objects.get(app_label=app, model=model)
        there = reverse("admin:view_on_site", args=[kind.pk, north.of[label].pk])
        assert client.get(there).status_code == 404


def test_who_has_no_entrance_is_sent_to_sign_in_everywhere(north: Rows) -> None:
    client = browser_of(User.objects.get(username="asks-NORTH"))
    for label in labels():
        for route in ("changelist", "add"):
            answer = client.post(address(label, route), {})
            assert (answer.status_code, "login" in answer.headers["Location"]) == (302, True)


# B54: who asks does not approve


@pytest.mark.parametrize("role", sorted(DECIDES))
def test_b54_an_own_request_is_not_approved_by_any_way_of_the_administration(
    north: Rows, role: str
) -> None:
    user = person_of(role, north.team)
    own, others = north.of["reviews.review"], rows_of("MORE")
    Review.objects.filter(pk=own.pk).update(requested_by=user)
    good: Review = others.of["reviews.review"]
    Review.objects.filter(pk=good.pk).update(team_id=north.team.pk)
    others.team.members.add(user)
    client, second = browser_of(user), browser_of(user)
    shown = client.get(address("reviews.review", "change", own.pk)).content.decode()
    assert "You asked for this yourself" in shown
    assert "decide/approve" not in shown
    for browser in (client, second):
        for decision in ("approve", "change"):
            there = address("reviews.review", "decide", own.pk, decision)
            posted = {"version": "1", "amount": "50.00", "requested_by": str(good.requested_by_id)}
            assert browser.post(there, posted).status_code == 403
    bulk = {
        "action": "approve_chosen",
        "_selected_action": [str(own.pk), str(good.pk)],
        "confirmed": "yes",
        f"version_{own.pk}": "1",
        f"version_{good.pk}": "1",
    }
    done = client.post(address("reviews.review", "changelist"), bulk)
    said = [str(message) for message in get_messages(done.wsgi_request)]
    assert sum("You asked for this yourself" in text for text in said) == 1
    own.refresh_from_db()
    assert (own.state, own.decided_by_id) == ("pending", None)


# The conversation


@pytest.mark.parametrize("role", sorted(SEES["reviews.review"]))
def test_the_conversation_is_read_by_who_may_decide_and_by_nobody_else_and_that_is_recorded(
    north: Rows, role: str
) -> None:
    review: Review = north.of["reviews.review"]
    said = Message.objects.get(conversation_id=review.conversation_id)
    Message.objects.filter(pk=said.pk).update(text='Please refund. They wrote: "box crushed"')
    client = browser_of(person_of(role, north.team))
    shown = client.get(address("reviews.review", "change", review.pk)).content.decode()
    reads = role in DECIDES
    assert ("Please refund." in shown, "review-quoted" in shown) == (reads, reads)
    entry = Entry.objects.get(action="review.viewed", subject_id=str(review.pk))
    assert entry.after["conversation"] is reads
    assert ("entries-title" in shown) is (role in AUDIT)


def test_another_teams_conversation_is_not_shown_beside_an_own_request(
    north: Rows, south: Rows
) -> None:
    """Who asked in a team that they have left sees the request, and no conversation."""
    user = person_of("lead", north.team)
    review: Review = south.of["reviews.review"]
    Review.objects.filter(pk=review.pk).update(requested_by=user)
    shown = browser_of(user).get(address("reviews.review", "change", review.pk))
    assert (shown.status_code, b"lines-title" in shown.content) == (200, False)
    assert UUID(str(review.pk))
