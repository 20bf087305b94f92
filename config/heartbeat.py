"""Signs of life of the workers, kept in Redis; written by signals, read by the readiness page."""

import time

import redis
from django.conf import settings

KEY = "countersign:workers"
FRESH_SECONDS = 15
_TIMEOUT = 2.0


def _client() -> redis.Redis:
    client: redis.Redis = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT
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

    Raises: redis.RedisError when Redis does not answer.
    """
    with _client() as client:
        rows = client.hgetall(KEY)
    limit = time.time() - FRESH_SECONDS
    return {
        bytes(node).decode().partition("@")[0]
        for node, seen in rows.items()
        if float(seen) >= limit
    }
