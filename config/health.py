"""Two pages for machines: is the web process up, and can the whole product take work?"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import redis
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from config import heartbeat

ANSWER_SECONDS: Final = 2.5
WORKERS = ("turns", "quarantine", "exports", "maintenance")
log = logging.getLogger(__name__)

# What did not answer at the last probe of this process, if there was one.
_missing: list[tuple[str, ...]] = []
Handler = Callable[[HttpRequest], HttpResponseBase]


def answer_first(get_response: Handler) -> Handler:
    """Answer the health pages before host names, redirects and sessions matter.

    A container's health check comes over plain HTTP to a bare address that no ALLOWED_HOSTS names.
    """
    pages: dict[str, Callable[[], HttpResponse]] = {"/healthz": live, "/readyz": ready}

    def handle(request: HttpRequest) -> HttpResponseBase:
        page = pages.get(request.path_info)
        if page is None:
            return get_response(request)
        response = page() if request.method in {"GET", "HEAD"} else HttpResponse(status=405)
        response["Cache-Control"] = "no-store"
        return response

    return handle


def live() -> HttpResponse:
    """Answer that the web process is up; asks nothing of anyone else."""
    return HttpResponse("ok", content_type="text/plain; charset=utf-8")


def ready() -> HttpResponse:
    """Answer 200 when database, Redis and a worker of each kind answer, else 503 and which not.

    The answer comes within `ANSWER_SECONDS`, whatever hangs. That refunds are paused, and how long
    requests wait for a worker, is said and does not make the product unready: it still takes work.
    """
    alive, standing = _within(ANSWER_SECONDS, _alive, _standing)
    parts = {"database": standing is not None, "redis": alive is not None}
    parts |= {f"worker_{name}": name in (alive or ()) for name in WORKERS}
    good = all(parts.values())
    _note(tuple(name for name, answers in parts.items() if not answers))
    answer: dict[str, Any] = {"ready": good, **parts, **(standing or {})}
    return JsonResponse(answer, status=200 if good else 503)


def _note(missing: tuple[str, ...]) -> None:
    """Log what does not answer when that changes, and not at every probe."""
    if _missing[-1:] == [missing]:
        return
    _missing[:] = [missing]
    if missing:
        log.warning("ready.lost", extra={"missing": ",".join(missing)})
    else:
        log.info("ready.given")


def _within(seconds: float, *asks: Callable[[], Any]) -> list[Any]:
    """Ask side by side; None stands for an answer that did not come in time."""
    answers: list[Any] = [None] * len(asks)

    def ask(place: int) -> None:
        answers[place] = asks[place]()

    # Daemons: one that hangs ends by its own timeout, and keeps neither the page nor the process.
    threads = [threading.Thread(target=ask, args=(at,), daemon=True) for at in range(len(asks))]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return list(answers)


def _standing() -> dict[str, Any] | None:
    """Ask the database how the work stands."""
    from agent_core.runs.operating import oldest_waits
    from payments.balances import refunds_pause

    try:
        paused = refunds_pause() is not None
        waits = int(oldest_waits().total_seconds())
        return {"refunds_paused": paused, "longest_wait_seconds": waits}
    except Error:
        return None
    finally:
        connection.close()


def _alive() -> set[str] | None:
    try:
        return heartbeat.alive()
    except redis.RedisError:
        return None
