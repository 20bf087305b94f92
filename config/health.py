"""Two pages for machines: is the web process up, and can the whole product take work?"""

import redis
from django.db import Error, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from config import heartbeat

WORKERS = ("turns", "quarantine", "exports")


@never_cache
@require_safe
def live(request: HttpRequest) -> HttpResponse:
    """Answer that the web process is up; asks nothing of anyone else."""
    return HttpResponse("ok", content_type="text/plain; charset=utf-8")


def _database() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            return bool(cursor.fetchone() == (1,))
    except Error:
        return False


def _workers() -> tuple[bool, set[str]]:
    try:
        return True, heartbeat.alive()
    except redis.RedisError:
        return False, set()


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """Answer 200 when database, Redis and a worker of each kind answer, else 503 and which not."""
    redis_answers, alive = _workers()
    parts = {"database": _database(), "redis": redis_answers}
    parts |= {f"worker_{name}": name in alive for name in WORKERS}
    good = all(parts.values())
    return JsonResponse({"ready": good, **parts}, status=200 if good else 503)
