"""The owner fetches the file; for everybody else there is none."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import connections
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from exports import views
from exports.models import Export
from exports.services_write import export_write
from payments.models import Customer, Team
from tests.exports.conftest import Ask, payments_many

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def ready(ask: Ask) -> Export:
    export = ask()
    export_write(export.pk)
    export.refresh_from_db()
    return export


def as_(user: User | None) -> Client:
    client = Client()
    if user is not None:
        client.force_login(user)
    return client


def address(export: Export | UUID, name: str = "download") -> str:
    return reverse(f"exports:{name}", args=[getattr(export, "pk", export)])


def body(response: Any) -> bytes:
    return b"".join(response.streaming_content)


def test_the_owner_gets_the_file_under_a_name_that_says_what_it_is(
    ready: Export, ana: User, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "exports"):
        response = as_(ana).get(address(ready))
    assert response.status_code == 200
    with default_storage.open(ready.file) as file:
        assert body(response) == file.read()
    assert response["Content-Type"] == "text/csv; charset=utf-8; header=present"
    assert response["Content-Length"] == str(ready.bytes)
    assert response["Cache-Control"] == "no-store, private"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"] == (
        f'attachment; filename="Payments March 2026 {ready.reference}.csv"'
    )
    [record] = [record for record in caplog.records if record.message == "export.downloaded"]
    assert (record.export, record.actor) == (str(ready.pk), ana.pk)  # type: ignore[attr-defined]


def test_a_name_in_other_letters_reaches_the_browser_whole(ready: Export, ana: User) -> None:
    Export.objects.update(filters={**ready.filters, "label": '三月 "x"\r\nSet-Cookie: a=b'})
    response = as_(ana).get(address(ready))
    assert response["Content-Disposition"] == (
        "attachment; filename*=utf-8''Payments%20%E4%B8%89%E6%9C%88%20x%20Set-Cookie%20a%3Db%20"
        f"{ready.reference}.csv"
    )
    response.close()


def test_for_others_there_is_no_such_export(
    ready: Export, bob: User, tom: User, caplog: pytest.LogCaptureFixture
) -> None:
    chief = User.objects.create_superuser("chief")
    pages: dict[int, set[tuple[int, int]]] = {}
    for user in (bob, tom, chief):
        for export in (ready, uuid4()):
            response = as_(user).get(address(export))
            page = (response.status_code, len(response.content))
            pages.setdefault(user.pk, set()).add(page)
            assert ready.reference.encode() not in response.content
            assert response.status_code == 404
    # Each sees the same page whether it is missing or somebody else's.
    assert [len(seen) for seen in pages.values()] == [1, 1, 1]
    denied = [record for record in caplog.records if record.message == "scope.denied"]
    assert {record.actor for record in denied} == {bob.pk, tom.pk, chief.pk}  # type: ignore[attr-defined]


def test_whoever_is_signed_out_is_asked_to_sign_in(ready: Export) -> None:
    for name, method in (("download", "get"), ("status", "get"), ("cancel", "post")):
        response = getattr(as_(None), method)(address(ready, name))
        assert response.status_code == 302
        assert response["Location"].startswith("/login/")


@pytest.mark.parametrize("how", ["right", "team", "left the firm"])
def test_after_a_right_was_withdrawn_there_is_no_such_export(
    ready: Export, ana: User, team: Team, how: str
) -> None:
    client = as_(ana)
    if how == "right":
        ana.user_permissions.clear()
    elif how == "team":
        team.members.remove(ana)
    else:
        User.objects.filter(pk=ana.pk).update(is_active=False)
    response = client.get(address(ready))
    assert response.status_code == (302 if how == "left the firm" else 404)
    assert ready.reference.encode() not in response.content


def test_the_link_dies_on_time_also_when_nobody_has_swept(ready: Export, ana: User) -> None:
    Export.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    response = as_(ana).get(address(ready))
    assert response.status_code == 410
    assert "The time to download this file is over." in response.content.decode()
    assert response["Cache-Control"] == "no-store, private"


def test_an_export_without_a_file_says_why(ask: Ask, ana: User) -> None:
    export = ask()
    client = as_(ana)
    assert client.get(address(export)).status_code == 409
    Export.objects.update(state="failed", failure="There was no room.")
    response = client.get(address(export))
    assert response.status_code == 410
    assert "There was no room." in response.content.decode()


def test_a_file_that_vanished_is_said_and_logged(
    ready: Export, ana: User, caplog: pytest.LogCaptureFixture
) -> None:
    default_storage.delete(ready.file)
    response = as_(ana).get(address(ready))
    assert response.status_code == 410
    assert "no longer there" in response.content.decode()
    assert "export.file_missing" in [record.message for record in caplog.records]


def test_an_asynchronous_server_gets_the_file_piece_by_piece(
    ask: Ask, customer: Customer, ana: User
) -> None:
    payments_many(customer, 3000)
    export = ask()
    export_write(export.pk)
    export.refresh_from_db()
    client = AsyncClient()
    client.force_login(ana)

    async def fetched() -> list[bytes]:
        response = await client.get(address(export))
        pieces = [piece async for piece in response.streaming_content]  # type: ignore[attr-defined]
        await sync_to_async(connections.close_all)()
        return pieces

    pieces = asyncio.run(fetched())
    assert len(pieces) > 2
    assert max(map(len, pieces)) <= views.CHUNK
    with default_storage.open(export.file) as file:
        assert b"".join(pieces) == file.read()


def test_the_status_says_how_far_it_is_and_links_only_what_can_be_fetched(
    ask: Ask, ana: User
) -> None:
    export = ask()
    client = as_(ana)
    waiting = client.get(address(export, "status"))
    assert waiting["Cache-Control"] == "no-store, private"
    assert waiting.json() == {
        "export": str(export.pk),
        "reference": export.reference,
        "title": "Payments March 2026",
        "state": "queued",
        "label": "in line",
        "text": "The export is being prepared.",
        "done": 0,
        "total": 1,
        "percent": 0,
        "bytes": 0,
        "download": None,
        "cancel": address(export, "cancel"),
        "expires_at": None,
    }
    export_write(export.pk)
    found = client.get(address(export, "status")).json()
    assert (found["state"], found["percent"], found["cancel"]) == ("ready", 100, None)
    assert found["download"] == address(export)
    assert found["text"].startswith("The file can be downloaded until ")


def test_others_get_no_status_and_cancel_nothing(ask: Ask, bob: User) -> None:
    export = ask()
    assert as_(bob).get(address(export, "status")).status_code == 404
    assert as_(bob).post(address(export, "cancel")).status_code == 404
    export.refresh_from_db()
    assert export.state == "queued"


def test_the_owner_cancels_and_is_led_back_to_our_own_pages_only(ask: Ask, ana: User) -> None:
    export = ask()
    client = as_(ana)
    back = client.post(address(export, "cancel"), {"next": "/chat/"})
    assert (back.status_code, back["Location"]) == (302, "/chat/")
    again = client.post(address(export, "cancel"), {"next": "https://evil.example/"})
    assert again.status_code == 200
    assert again.json()["state"] == "cancelled"


def test_cancelling_what_is_ready_says_that_it_was_too_late(ready: Export, ana: User) -> None:
    response = as_(ana).post(address(ready, "cancel"))
    assert response.status_code == 409
    assert response.json()["state"] == "ready"


def test_only_the_right_methods_are_answered_and_cancel_wants_its_token(
    ask: Ask, ana: User
) -> None:
    export = ask()
    client = as_(ana)
    assert client.post(address(export)).status_code == 405
    assert client.get(address(export, "cancel")).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ana)
    assert strict.post(address(export, "cancel")).status_code == 403
    export.refresh_from_db()
    assert export.state == "queued"
