"""Where a piece of work came from: set by the web server for each request, else the process."""

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import iscoroutinefunction
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils.decorators import sync_and_async_middleware

from reviews.audit.words import OriginKind


@dataclass(frozen=True, slots=True)
class Origin:
    """The door through which something came, and the address of who stood before it."""

    kind: OriginKind
    address: str | None = None


_COMMAND: Final = Path(sys.argv[0]).name == "manage.py"
_PROCESS: Final = Origin(OriginKind.COMMAND if _COMMAND else OriginKind.TASK)
_here: ContextVar[Origin | None] = ContextVar("audit_origin", default=None)


def origin_now() -> Origin:
    """Return where the present work came from."""
    return _here.get() or _PROCESS


@contextmanager
def origin_of(origin: Origin) -> Iterator[None]:
    """Let everything in the body come from there."""
    token = _here.set(origin)
    try:
        yield
    finally:
        _here.reset(token)


@sync_and_async_middleware
def middleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Name desk or administration, and the address, for all that a request writes."""
    if iscoroutinefunction(get_response):

        async def later(request: HttpRequest) -> HttpResponseBase:
            with origin_of(_asked(request)):
                waited: Awaitable[HttpResponseBase] = get_response(request)
                return await waited

        return later

    def now(request: HttpRequest) -> HttpResponseBase:
        with origin_of(_asked(request)):
            answer: HttpResponseBase = get_response(request)
            return answer

    return now


def _asked(request: HttpRequest) -> Origin:
    admin = request.path.startswith(reverse("admin:index"))
    return Origin(OriginKind.ADMIN if admin else OriginKind.WEB, _address(request))


def _address(request: HttpRequest) -> str | None:
    """Return the peer's address; behind a proxy the one that the proxy itself has added last."""
    told = request.META.get("REMOTE_ADDR", "")
    if settings.SECURE_PROXY_SSL_HEADER:
        told = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or told
    try:
        return str(ip_address(told))
    except ValueError:
        # A Unix socket has none.
        return None
