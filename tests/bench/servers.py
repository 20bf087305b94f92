"""The whole product as real processes on servers of their own, and what they use.

Web and worker are started by the very commands of the launcher, on `tests.bench.settings`; so what
is measured is what the product runs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, LiteralString

import psutil
import psycopg
import redis

from config.children import Child, Spec
from config.embedded import postgres
from config.embedded import redis as redis_server
from config.home import redis_url
from config.launcher import parts, preflight
from tests.bench.model import GATE, waiting_at

ROOT: Final = Path(__file__).parents[2]
READY_SECONDS: Final = 180.0
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


@dataclass
class Product:
    """The started product: where it is, and readings of what it uses."""

    folder: Path
    database_url: str
    redis_url: str
    port: int
    children: dict[str, Child] = field(default_factory=dict)

    @property
    def gate(self) -> Path:
        """Return the file that lets the turns go on that wait for the model."""
        return self.folder / "gate"

    def waiting(self) -> list[int]:
        """List the process of each call that waits for the model at this moment."""
        return [int(each.name.partition("-")[0]) for each in waiting_at(self.gate).glob("*-*")]

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment of every process of the product."""
        return {
            "DJANGO_SETTINGS_MODULE": "tests.bench.settings",
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "COUNTERSIGN_HOME": str(self.folder / "home"),
            GATE: str(self.gate),
            # As the product logs by default: it is part of what a turn costs.
            "LOG_LEVEL": "INFO",
        }

    def start(self, spec: Spec) -> Child:
        """Start a part of the product; whoever needs it waits until it is ready."""
        named = Spec(
            name=spec.name,
            command=spec.command,
            answers=spec.answers,
            env={**spec.env, **self.variables},
            folder=ROOT,
            endings=spec.endings,
        )
        child = Child(named, self.folder / "log" / f"{spec.name}.log")
        self.children[spec.name] = child
        child.start()
        return child

    def python(self, module: str, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start a module of the measurement, spoken to in lines."""
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **self.variables, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def asked(self, module: str, *arguments: str, **variables: str) -> Any:
        """Run a module of the measurement to its end and return the JSON that it prints."""
        with self.python(module, *arguments, **variables) as process:
            told, _nothing = process.communicate()
        if process.returncode:
            raise ChildProcessError(f"{module} ended with {process.returncode}")
        return json.loads(told)

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
        record = self.children[name].record
        assert record is not None
        return psutil.Process(record.pid)

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
    # A short path: it holds sockets.
    folder = Path(tempfile.mkdtemp(prefix="cs-bench-", dir="/tmp"))
    folder.chmod(0o711)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        servers = [postgres.prepare(folder, durable=durable), redis_server.prepare(folder)]
        for spec in servers:
            child = Child(spec, folder / "log" / f"{spec.name}.log")
            stack.callback(child.stop)
            child.start()
            child.wait_ready(READY_SECONDS)
        product = Product(
            folder=folder,
            database_url=postgres.create_database(folder),
            redis_url=redis_url(folder),
            port=preflight.free_port(),
        )
        stack.callback(_stop, product)
        _tables(product)
        turns = parts.worker("turns", product.redis_url)
        started = [product.start(parts.web("127.0.0.1", product.port)), product.start(turns)]
        for child in started:
            child.wait_ready(READY_SECONDS)
        yield product


def _tables(product: Product) -> None:
    for arguments in (("migrate", "--no-input"), ("checkpoints_setup",), ("sample_data",)):
        if product.start(parts.command(*arguments)).wait_end():
            raise ChildProcessError(f"{arguments[0]} failed: {_log(product, arguments[0])}")


def _log(product: Product, name: str) -> str:
    return (product.folder / "log" / f"{name}.log").read_text("utf-8")[-2000:]


def _stop(product: Product) -> None:
    # Whoever still waits for the model may go, so that the worker can leave.
    product.gate.touch()
    for child in product.children.values():
        child.ask_end()
    for child in product.children.values():
        child.stop()


@contextmanager
def spoken_to(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """End a helper process with the body."""
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ask(process: subprocess.Popen[str], order: dict[str, Any] | Sequence[Any]) -> Any:
    """Send an order as one line of JSON and return the line that answers it.

    Raises:
        ChildProcessError: the helper process ended instead.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise ChildProcessError(f"a helper process ended with {process.wait()}")
    return json.loads(line)
