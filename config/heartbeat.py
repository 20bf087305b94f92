"""Signs of life of the workers, kept in Redis; written by signals, read by the readiness page."""

import time
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

KEY = "countersign:workers"
FRESH_SECONDS = 15
_TIMEOUT = 1.0
_PROBE = "countersign:ready"
_FORGOTTEN_SECONDS = 3600


def _client() -> redis.Redis:
    # One try: a beat that is lost is followed by the next, and a page must say so within seconds.
    client: redis.Redis = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_TIMEOUT,
        socket_connect_timeout=_TIMEOUT,
        retry=Retry(NoBackoff(), 0),
    )
    return client


def beat(node: str) -> None:
    """Note that the worker of this node name lives now; a lost Redis is the consumer's matter."""
    try:
        with _client() as client:
            client.hset(KEY, node, str(int(time.time())))
    except redis.RedisError:
        return


def forget(node: str) -> None:
    """Remove the sign of life of a worker that ended."""
    try:
        with _client() as client:
            client.hdel(KEY, node)
    except redis.RedisError:
        return


def alive() -> set[str]:
    """Return the kinds of worker (the node name before the @) that gave a sign of life lately.

    Raises: redis.RedisError when Redis does not answer, or takes nothing.
    """
    with _client() as client:
        # A Redis that is full still answers who only reads, and takes no work.
        client.set(_PROBE, 1, ex=60)
        return {node.partition("@")[0] for node, age in _ages(client).items() if _fresh(age)}


def overview() -> dict[str, Any]:
    """Return how many tasks lie in each queue, and each worker's age in seconds and if it is alive.

    `redis` is False, and the rest empty, when Redis does not answer.
    """
    names = [queue.name for queue in settings.CELERY_TASK_QUEUES]
    try:
        with _client() as client:
            ages = _ages(client)
            # A worker that was killed cannot take leave; an old one is of no interest to anybody.
            gone = [node for node, seconds in ages.items() if seconds > _FORGOTTEN_SECONDS]
            if gone:
                client.hdel(KEY, *gone)
            queues = {name: int(client.llen(name)) for name in names}
    except redis.RedisError:
        return {"redis": False, "queues": {}, "workers": {}}
    workers = {node: (age, _fresh(age)) for node, age in ages.items() if node not in gone}
    return {"redis": True, "queues": queues, "workers": workers}


def _fresh(age: float) -> bool:
    """Tell whether a worker that gave its last sign of life so many seconds ago counts as alive."""
    return age <= FRESH_SECONDS


def _ages(client: redis.Redis) -> dict[str, float]:
    """Return each worker's node name with the seconds since its last sign of life."""
    now = time.time()
    return {_text(node): max(0.0, now - float(seen)) for node, seen in client.hgetall(KEY).items()}


def _text(node: bytes | str) -> str:
    return node if isinstance(node, str) else node.decode()
