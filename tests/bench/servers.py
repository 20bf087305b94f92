"""The whole product as real processes on servers of their own, and what they use.

Web and worker are started by the very commands of the launcher, on `tests.bench.settings`; so what
is measured is what the product runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString

import psutil
import psycopg
import redis

from config.home import BASE_DIR
from config.launcher import parts
from config.launcher.preflight import free_port
from tests.bench.model import GATE, waiting_at
from tests.rig.product import Parts, command_run
from tests.rig.servers import Postgres, redis_own, short_folder
from tests.rig.spoken import Spoken

OURS: Final = "bench"
"""How the measurement's own sessions name themselves to Postgres, so that they are not counted."""


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of CPU so far."""

    web: float
    worker: float
    postgres: float
    redis: float

    @property
    def product(self) -> float:
        """Return what our own processes took."""
        return self.web + self.worker

    def since(self, before: Used) -> Used:
        """Return what came on top of an earlier reading."""
        return Used(
            self.web - before.web,
            self.worker - before.worker,
            self.postgres - before.postgres,
            self.redis - before.redis,
        )


class Product(Parts):
    """The started product: where it is, and readings of what it uses."""

    def __init__(self, folder: Path, database_url: str, redis_url: str) -> None:
        self.database_url = database_url
        self.redis_url = redis_url
        self.port = free_port()
        self.gate = folder / "gate"
        """The file that lets the turns go on that wait for the model."""
        variables = {
            "DJANGO_SETTINGS_MODULE": "tests.bench.settings",
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "COUNTERSIGN_HOME": str(folder / "home"),
            GATE: str(self.gate),
            # As the product logs by default: it is part of what a turn costs.
            "LOG_LEVEL": "INFO",
        }
        super().__init__(folder / "log", variables)

    def waiting(self) -> list[int]:
        """List the process of each call that waits for the model at this moment."""
        return [int(each.name.partition("-")[0]) for each in waiting_at(self.gate).glob("*-*")]

    def python(self, module: str) -> Spoken:
        """Start a module of the measurement, spoken to in lines."""
        return Spoken(module, variables=self.variables)

    def asked(self, module: str, *arguments: str, **variables: str) -> Any:
        """Run a module of the measurement to its end and return the JSON that it prints."""
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=BASE_DIR,
            env={**os.environ, **self.variables, **variables},
            stdout=subprocess.PIPE,
            check=True,
        )
        return json.loads(done.stdout)

    def worker(self) -> psutil.Process:
        """Return the process that works turns off."""
        return self._process("worker-turns")

    def used(self) -> Used:
        """Read how much CPU each part has used so far, its child processes included."""
        return Used(
            web=_cpu(self._process("web")),
            worker=_cpu(self.worker()),
            postgres=self._postgres_cpu(),
            redis=self._redis_cpu(),
        )

    def sessions(self) -> int:
        """Count the product's sessions in its database."""
        return self.count(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name <> %s",
            OURS,
        )

    def count(self, query: LiteralString, *values: str) -> int:
        """Return the one number that a query finds."""
        with self.server() as server:
            found = server.execute(query, values).fetchone()
        return int(found[0]) if found else 0

    def server(self) -> psycopg.Connection:
        """Return a connection of the measurement's own."""
        return psycopg.connect(self.database_url, autocommit=True, application_name=OURS)

    def _process(self, name: str) -> psutil.Process:
        return psutil.Process(self.processes[name].pid)

    def _postgres_cpu(self) -> float:
        with self.server() as server:
            backend = psutil.Process(server.info.backend_pid)
            postmaster = backend.parent()
            # What has ended counts in its parent, once the parent has taken note of it.
            return _cpu(postmaster) if postmaster else 0.0

    def _redis_cpu(self) -> float:
        with redis.Redis.from_url(self.redis_url) as client:
            told: Any = client.info("cpu")
        return float(told["used_cpu_sys"]) + float(told["used_cpu_user"])


def memory(process: psutil.Process) -> int:
    """Return the resident bytes of a process and of all below it."""
    return sum(each.memory_info().rss for each in (process, *process.children(recursive=True)))


def _cpu(process: psutil.Process) -> float:
    """Return the seconds of a process and of all below it."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            total += sum(each.cpu_times()[:4])
    return total


@contextmanager
def product_started(*, durable: bool = True) -> Iterator[Product]:
    """Start servers, tables, sample data, the web server and the worker for turns."""
    with ExitStack() as stack:
        folder = stack.enter_context(short_folder("cs-bench-"))
        postgres, broker = Postgres(folder, durable=durable), redis_own(folder)
        for server in (postgres, broker):
            stack.callback(server.stop)
            server.start()
        product = Product(folder, postgres.url, broker.url)
        for arguments in (("migrate", "--no-input"), ("checkpoints_setup",), ("sample_data",)):
            command_run(product.folder, *arguments, **product.variables)
        stack.callback(product.stop)
        # Whoever still waits for the model may go, so that the worker can leave.
        stack.callback(product.gate.touch)
        product.start(parts.web("127.0.0.1", product.port))
        product.start(parts.worker("turns", product.redis_url))
        product.ready()
        yield product
