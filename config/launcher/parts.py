"""The parts of the product: how each is started, and how to see that it answers."""

import signal
import sys
from pathlib import Path

import httpx
from celery import Celery

from config.broker import broker_url
from config.children import Spec
from config.home import BASE_DIR

# Workers get time to hand their runs back; a second Ctrl-C cuts it short.
WORKER_ENDINGS = ((signal.SIGTERM, 20.0), (signal.SIGQUIT, 3.0), (signal.SIGKILL, 5.0))
WORKERS = {
    # A turn mostly waits for its model, and holds no connection meanwhile.
    "turns": ("turns", "threads", 64),
    # A process for each run: one that takes its process down takes nobody else along.
    "quarantine": ("quarantine", "prefork", 4),
    "exports": ("exports", "threads", 2),
    # Of its own: what frees stuck runs must not wait behind them.
    "maintenance": ("maintenance", "threads", 3),
}
NODE_HOST = "countersign"


def responds(url: str) -> bool:
    """Say whether a web server at this address answers well."""
    try:
        return httpx.get(url, timeout=2, trust_env=False).is_success
    except httpx.HTTPError:
        return False


def processor(folder: Path, port: int, hook: str = "") -> Spec:
    """The sandbox payment processor, with a store of its own; its events go to `hook`."""
    ready = folder / "sandbox.ready"
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "payments.sandbox", "--port", str(port)]
    command += ["--store", str(folder / "sandbox.sqlite3"), "--ready-file", str(ready)]
    command += ["--hook", hook]
    return Spec(
        name="processor",
        command=command,
        answers=lambda: ready.exists() and ready.read_text("utf-8").strip() == url,
        folder=BASE_DIR,
    )


def hook_address(host: str, port: int) -> str:
    """Return where the web server takes the processor's events."""
    place = f"[{host}]" if ":" in host else host
    return f"http://{_reachable(place)}:{port}/hooks/stripe/"


def web(host: str, port: int) -> Spec:
    """The web server."""
    place = f"[{host}]" if ":" in host else host
    command = [sys.executable, "-m", "uvicorn", "config.asgi:application"]
    command += ["--host", host, "--port", str(port), "--no-access-log", "--lifespan", "off"]
    # Event streams never end by themselves.
    command += ["--timeout-graceful-shutdown", "2"]
    return Spec(
        name="web",
        command=command,
        answers=lambda: responds(f"http://{_reachable(place)}:{port}/healthz"),
        folder=BASE_DIR,
    )


def _reachable(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(host, host)  # noqa: S104


def worker(name: str, redis_url: str) -> Spec:
    """One Celery worker with the queues of its kind."""
    queues, pool, slots = WORKERS[name]
    node = f"{name}@{NODE_HOST}"
    command = [sys.executable, "-m", "celery", "-A", "config", "worker", "-n", node]
    command += ["-Q", queues, "-P", pool, "-c", str(slots), "--without-mingle"]
    command += ["--without-gossip", "-l", "INFO"]
    return Spec(
        name=f"worker-{name}",
        command=command,
        answers=lambda: _pings(redis_url, node),
        folder=BASE_DIR,
        endings=WORKER_ENDINGS,
    )


def _pings(redis_url: str, node: str) -> bool:
    with Celery("launcher", broker=broker_url(redis_url), set_as_current=False) as client:
        return bool(client.control.ping(destination=[node], timeout=1.0))


def beat(folder: Path) -> Spec:
    """The one process that sends the periodic tasks."""
    schedule = folder / "beat-schedule"
    command = [sys.executable, "-m", "celery", "-A", "config", "beat", "-l", "WARNING"]
    command += ["--schedule", str(schedule), "--pidfile", ""]
    # The scheduler writes its file when it has begun to tick.
    return Spec(
        name="beat",
        command=command,
        answers=lambda: any(folder.glob("beat-schedule*")),
        folder=BASE_DIR,
    )


def command(*arguments: str) -> Spec:
    """One management command, run to its end."""
    return Spec(
        name=arguments[0],
        command=[sys.executable, str(BASE_DIR / "manage.py"), *arguments],
        answers=lambda: False,
        folder=BASE_DIR,
    )
