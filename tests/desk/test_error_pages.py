"""Pages of errors ask the database nothing: they are rendered where nobody closes a connection."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.contrib.messages.storage.fallback import FallbackStorage
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import connection
from django.db.backends.signals import connection_created
from django.http import Http404, HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.urls import get_resolver, reverse
from django.utils.functional import SimpleLazyObject

from agent_core.runs.models import Conversation, Message
from config.asgi import application
from tests.desk.conftest import Enter

ERRORS = {400: BadRequest(), 403: PermissionDenied(), 404: Http404()}


def signed_in(user: User) -> HttpRequest:
    """Return a request whose user and messages are read when somebody looks at them."""
    request = RequestFactory().get("/nothing/")
    request.session = Client().session
    request.user = SimpleLazyObject(lambda: User.objects.get(pk=user.pk))  # type: ignore[assignment]
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    return request


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_an_error_page_is_rendered_without_a_query(
    status: int, tom: User, django_assert_num_queries: Any
) -> None:
    handler = get_resolver().resolve_error_handler(status)
    given = {"exception": ERRORS[status]} if status in ERRORS else {}
    request = signed_in(tom)
    with django_assert_num_queries(0):
        answer: HttpResponse = handler(request, **given)
    assert answer.status_code == status
    assert "Countersign</title>" in answer.content.decode()


SAID = {
    400: "The desk could not read this. Reload this page; what you typed is kept.",
    403: "Your role does not allow this. Nothing was changed.",
    404: "This does not exist, or it is not yours to see. What you typed is kept.",
    500: "Something failed on our side; it has been written down. What you typed is kept. "
    "If it was a payment or a refund, look at its state before you ask again. Reference: ",
}


@pytest.mark.parametrize("status", [400, 403, 404, 500])
def test_a_script_gets_the_error_as_a_sentence(
    status: int, tom: User, django_assert_num_queries: Any
) -> None:
    handler = get_resolver().resolve_error_handler(status)
    given = {"exception": ERRORS[status]} if status in ERRORS else {}
    request = signed_in(tom)
    request.META["HTTP_ACCEPT"] = "application/json"
    with django_assert_num_queries(0):
        answer: HttpResponse = handler(request, **given)
    assert answer.status_code == status
    said = json.loads(answer.content)
    if status == 500:
        said["error"] = re.sub(r"E-\w{8}\.$", "", said["error"])
    assert said == {"error": SAID[status]}


@pytest.mark.parametrize("accepts", ["text/html", "application/json"])
def test_a_failure_shows_a_reference_that_its_line_in_the_log_has(
    accepts: str, enter: Enter, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is written as the product writes it: through the handler of the settings."""
    client, written = enter(tom), io.StringIO()
    client.raise_request_exception = False
    (root,) = [one for one in logging.getLogger().handlers if one.name == "stderr"]
    assert isinstance(root, logging.StreamHandler)
    monkeypatch.setattr(root, "stream", written)

    def breaks(*_args: object, **_options: object) -> None:
        raise RuntimeError("the inside")

    monkeypatch.setattr("desk.views.chat.render", breaks)
    answer = client.get(reverse("home"), headers={"Accept": accepts})

    said = answer.content.decode()
    found = re.search(r"Reference: (E-\w{8})\.", said)
    assert answer.status_code == 500
    assert found, said
    (line,) = [one for one in written.getvalue().splitlines() if "Internal Server Error" in one]
    assert f"reference={found[1]}" in line
    assert "RuntimeError" not in said
    assert "the inside" not in said


def test_a_script_whose_token_is_of_an_older_session_is_told_to_reload(
    tom: User, talk: Conversation
) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(tom)
    address = reverse("api-messages", args=[talk.pk])
    answer = client.post(address, {"text": "hello"}, headers={"Accept": "application/json"})
    assert answer.status_code == 403
    assert answer.json()["error"].startswith(
        "You signed in again in another tab. Reload this page; what you typed is kept"
    )
    page = client.post(address, {"text": "hello"})
    assert (page.status_code, page.headers["Content-Type"]) == (403, "text/html; charset=utf-8")
    assert "The page was too old to be sent" in page.content.decode()
    assert not Message.objects.exists()


def test_a_script_that_asks_for_what_is_not_there_is_told_in_words(enter: Enter, tom: User) -> None:
    address = reverse("api-messages", args=[uuid4()])
    answer = enter(tom).post(address, {"text": "hi"}, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()) == (404, {"error": SAID[404]})


class Opened:
    """The connections to the database that this process opens while it is being watched."""

    def __init__(self) -> None:
        self.made: list[Any] = []

    def note(self, **given: Any) -> None:
        self.made.append(given["connection"])

    def left(self) -> list[int]:
        """Return the servers' process ids of those that are still open."""
        lines = [made.connection for made in self.made]
        return [line.info.backend_pid for line in lines if line is not None and not line.closed]


@contextmanager
def _watched() -> Iterator[Opened]:
    """Watch what is opened, by whichever thread."""
    watching = Opened()
    connection_created.connect(watching.note)
    try:
        yield watching
    finally:
        connection_created.disconnect(watching.note)


def _end(pids: list[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pid) FROM unnest(%s::int[]) AS pid", [pids])
    connection.close()


# The library has no types.
_spoken_to: Any = ApplicationCommunicator


async def _status(path: str, cookie: str) -> int:
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"testserver"), (b"cookie", f"sessionid={cookie}".encode())],
    }
    talk = _spoken_to(application, scope)
    await talk.send_input({"type": "http.request", "body": b"", "more_body": False})
    begun = await talk.receive_output(20)
    while (await talk.receive_output(20)).get("more_body"):
        pass
    await talk.wait(20)
    return int(begun["status"])


@pytest.mark.django_db(transaction=True)
def test_an_error_page_survives_a_restart_of_the_database_and_leaves_no_connection(
    client: Client,
) -> None:
    """What a page left open is ended before the next one, as a restart of Postgres does."""
    client.force_login(User.objects.create_user("tom"))
    cookie = client.cookies["sessionid"].value
    missing = f"/c/{uuid4()}/"

    async def pages(opened: Opened) -> list[tuple[int, int]]:
        seen = []
        for path in (missing, "/nothing/", missing, "/nothing/"):
            status, left = await _status(path, cookie), opened.left()
            await sync_to_async(_end)(left)
            seen.append((status, len(left)))
        return seen

    with _watched() as opened:
        assert asyncio.run(pages(opened)) == [(404, 0)] * 4
        assert opened.made, "no page has asked the database anything"
