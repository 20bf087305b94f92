"""A Postgres, a Redis and a sandbox processor of its own, each to be killed and started again."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import redis

from config.children import Child
from config.embedded import postgres
from config.embedded import redis as embedded_redis
from config.home import postgres_url, redis_url
from config.launcher import parts
from config.launcher.preflight import free_port

READY_SECONDS = 120.0


class Servers:
    """The servers of one chaos run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = free_port()
        self.processor_url = f"http://127.0.0.1:{port}"
        spec = parts.processor(folder, port)
        # Faults on demand, and the books to compare with; a slow line is dropped soon.
        spec = replace(spec, command=[*spec.command, "--control", "--hold", "0.5"])
        self.postgres = self._child(postgres.prepare(folder))
        self.redis = self._child(embedded_redis.prepare(folder))
        self.processor = self._child(spec)

    def _child(self, spec: Any) -> Child:
        return Child(spec, self.folder / "log" / f"{spec.name}.log")

    def start(self) -> None:
        """Start all three and name them to this process and to those it starts."""
        for child in (self.postgres, self.redis, self.processor):
            child.start()
        for child in (self.postgres, self.redis, self.processor):
            child.wait_ready(READY_SECONDS)
        os.environ["DATABASE_URL"] = postgres.create_database(self.folder)
        os.environ["REDIS_URL"] = redis_url(self.folder)
        os.environ["SANDBOX_URL"] = self.processor_url
        os.environ["COUNTERSIGN_HOME"] = str(self.folder / "home")

    def stop(self) -> None:
        """End all three."""
        for child in (self.processor, self.redis, self.postgres):
            child.stop()

    def down(self, child: Child, number: signal.Signals) -> None:
        """End one of them with no warning; SIGQUIT is Postgres's immediate shutdown."""
        record = child.record
        assert record is not None
        os.kill(record.pid, number)
        child.wait_end()
        child.clear()

    def up(self, child: Child) -> float:
        """Start one of them again; return when it answered, in seconds of the clock."""
        child.start()
        child.wait_ready(READY_SECONDS)
        return time.time()

    def sessions_end(self) -> None:
        """Cut everybody off from Postgres."""
        with psycopg.connect(postgres_url(self.folder, "postgres"), autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def redis_do(self, *command: str) -> None:
        """Send one command to Redis."""
        with redis.Redis.from_url(redis_url(self.folder)) as client:
            client.execute_command(*command)

    def processor_fault(self, kind: str) -> None:
        """Let the processor's next answer fail."""
        httpx.post(
            f"{self.processor_url}/control/faults",
            data={"kind": kind, "times": "1"},
            trust_env=False,
            timeout=5,
        ).raise_for_status()

    def processor_books(self) -> dict[str, Any]:
        """Read everything the processor knows."""
        answer = httpx.get(f"{self.processor_url}/control/books", trust_env=False, timeout=60)
        books: dict[str, Any] = answer.raise_for_status().json()
        return books
