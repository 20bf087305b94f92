"""How the web process handles requests: one thread each, and streams as long as somebody reads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings
from django.urls import path
from django.utils import translation

from config.serving import Handler

SECONDS = 20
THREADS: list[threading.Thread] = []
HELD: list[object] = []
CLOSED = threading.Event()


def noting(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Any:
    """Note in which thread each request passes."""

    def note(request: HttpRequest) -> HttpResponseBase:
        THREADS.append(threading.current_thread())
        try:
            return get_response(request)
        finally:
            THREADS.append(threading.current_thread())

    return note


def page(request: HttpRequest) -> HttpResponse:
    THREADS.append(threading.current_thread())
    said = f"{User.objects.count()} {translation.get_language()} {request.POST.get('text', '')}"
    HELD.append(connections["default"])
    translation.activate("de")
    return HttpResponse(said)


def broken(request: HttpRequest) -> HttpResponse:
    HELD.append(connections["default"])
    raise ValueError(User.objects.count())


class Stream(StreamingHttpResponse):
    """Tells when it is closed."""

    def close(self) -> None:
        super().close()
        CLOSED.set()


def endless(_request: HttpRequest) -> Stream:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield b"piece"
            await asyncio.Event().wait()

    User.objects.count()
    HELD.append(connections["default"])
    return Stream(pieces())


urlpatterns = [path("page", page), path("broken", broken), path("endless", endless)]


@pytest.fixture
def handler() -> Any:
    """Return a handler with pages that tell on it."""
    THREADS.clear()
    HELD.clear()
    CLOSED.clear()
    middleware = [
        f"{__name__}.noting",
        "django.middleware.common.CommonMiddleware",
        f"{__name__}.noting",
    ]
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=middleware):
        yield Handler()


def talk_of(handler: Handler, where: str) -> Any:
    """Begin to talk with the handler as a server does."""
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": where,
        "query_string": b"",
        "headers": [
            (b"host", b"testserver"),
            (b"content-type", b"application/x-www-form-urlencoded"),
            (b"content-length", b"9"),
        ],
    }
    make: Any = ApplicationCommunicator
    return make(handler, scope)


async def answer_of(handler: Handler, where: str) -> tuple[int, str]:
    """Return status and text of one page."""
    talk = talk_of(handler, where)
    await talk.send_input({"type": "http.request", "body": b"text=", "more_body": True})
    await talk.send_input({"type": "http.request", "body": b"gute", "more_body": False})
    head, body = await talk.receive_output(SECONDS), await talk.receive_output(SECONDS)
    await talk.wait(SECONDS)
    return head["status"], body["body"].decode()


@pytest.mark.django_db(transaction=True)
def test_one_thread_handles_a_request_and_keeps_nothing_of_it(handler: Handler) -> None:
    signals: list[threading.Thread] = []

    def note(**_given: Any) -> None:
        signals.append(threading.current_thread())

    async def both() -> list[tuple[int, str]]:
        return [await answer_of(handler, "/page") for _time in range(2)]

    for signal in (request_started, request_finished):
        signal.connect(note)
    try:
        assert asyncio.run(both()) == [(200, "0 en gute")] * 2
    finally:
        for signal in (request_started, request_finished):
            signal.disconnect(note)
    assert len(THREADS) == 2 * 5
    assert len(signals) == 2 * 2
    assert {*THREADS[:5]} == {*signals[:2]}
    assert {*THREADS[5:]} == {*signals[2:]}
    assert threading.main_thread() not in THREADS
    assert [held.connection for held in HELD] == [None, None]  # type: ignore[attr-defined]


@pytest.mark.django_db(transaction=True)
def test_a_view_that_breaks_is_answered_and_gives_its_connection_back(
    handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    status, _text = asyncio.run(answer_of(handler, "/broken"))
    assert status == 500
    assert "Internal Server Error: /broken" in caplog.text
    assert [held.connection for held in HELD] == [None]  # type: ignore[attr-defined]


@pytest.mark.django_db(transaction=True)
def test_a_stream_ends_when_its_reader_leaves_and_holds_no_connection(handler: Handler) -> None:
    async def left() -> None:
        talk = talk_of(handler, "/endless")
        await talk.send_input({"type": "http.request", "body": b"text=gute", "more_body": False})
        await talk.receive_output(SECONDS)
        assert (await talk.receive_output(SECONDS))["body"] == b"piece"
        assert [held.connection for held in HELD] == [None]  # type: ignore[attr-defined]
        assert not CLOSED.is_set()
        await talk.send_input({"type": "http.disconnect"})
        assert await asyncio.to_thread(CLOSED.wait, SECONDS)
        await talk.wait(SECONDS)

    asyncio.run(left())
    connection.close()
