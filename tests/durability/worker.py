"""A real Celery worker of the session's Redis, to be killed, stalled and started again."""

from __future__ import annotations

import os
from typing import Final

import redis

from tests.rig.processes import Process
from tests.rig.product import WORKER_SAYS, Parts, worker_spec

LEASE_SECONDS: Final = 2
LEASES: Final = {"RUN_LEASE_SECONDS": str(LEASE_SECONDS)}
_QUEUES: Final = "turns,quarantine,maintenance"


def worker_start(parts: Parts, pool: str = "threads") -> Process:
    """Start a worker for turns, quarantine and maintenance; it takes at once what lies there."""
    spec = worker_spec(
        "turns", os.environ["REDIS_URL"], node="turns@own", queues=_QUEUES, pool=pool, slots=4
    )
    return parts.start(spec, says=WORKER_SAYS)


def queues_clear() -> None:
    """Forget what earlier tests have enqueued."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    for name in ("turns", "quarantine", "maintenance", "exports"):
        client.delete(name)
    client.close()
