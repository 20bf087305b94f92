"""Two pages for machines: is the web process up, and can the whole product take work?"""

from collections.abc import Callable

import redis
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from config import heartbeat

WORKERS = ("turns", "quarantine", "exports", "maintenance")
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
    """Answer 200 when database, Redis and a worker of each kind answer, else 503 and which not."""
    redis_answers, alive = _workers()
    parts = {"database": _database(), "redis": redis_answers}
    parts |= {f"worker_{name}": name in alive for name in WORKERS}
    good = all(parts.values())
    return JsonResponse({"ready": good, **parts}, status=200 if good else 503)


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return bool(cursor.fetchone() == (1,))
    except Error:
        return False
    finally:
        # Outside the request signals nobody else would return it.
        if not connection.in_atomic_block:
            connection.close()


def _workers() -> tuple[bool, set[str]]:
    try:
        return True, heartbeat.alive()
    except redis.RedisError:
        return False, set()
