"""A Postgres, a Redis and a sandbox processor of its own, each to be killed and started again."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import redis

from config.launcher import parts
from config.launcher.preflight import free_port
from tests.rig.servers import Postgres, Server, redis_own
from tests.rig.sessions import administration, database_of, sessions_end


class Servers:
    """The servers of one chaos run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        port = free_port()
        self.processor_url = f"http://127.0.0.1:{port}"
        spec = parts.processor(folder, port)
        # Faults on demand, and the books to compare with; a slow line is dropped soon.
        spec = replace(spec, command=[*spec.command, "--control", "--hold", "0.5"])
        self.postgres = Postgres(folder, durable=True)
        self.redis = redis_own(folder)
        self.processor = Server(spec, self.processor_url, folder)

    def start(self) -> None:
        """Start all three and name them to this process and to those it starts."""
        for server in (self.postgres, self.redis, self.processor):
            server.start()
        os.environ["DATABASE_URL"] = self.postgres.url
        os.environ["REDIS_URL"] = self.redis.url
        os.environ["SANDBOX_URL"] = self.processor_url
        os.environ["COUNTERSIGN_HOME"] = str(self.folder / "home")

    def stop(self) -> None:
        """End all three."""
        for server in (self.processor, self.redis, self.postgres):
            server.stop()

    def sessions_end(self) -> None:
        """Cut everybody off from Postgres."""
        with administration(self.postgres.url) as server:
            sessions_end(server, database_of(self.postgres.url))

    def redis_do(self, *command: str) -> None:
        """Send one command to Redis."""
        with redis.Redis.from_url(self.redis.url) as client:
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
