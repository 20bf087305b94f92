"""The product's own processes on servers of a test's own, and a staff member at its web server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final
from uuid import UUID, uuid4

import httpx
import redis
from django.contrib.auth.models import User
from django.test import Client

from agent_core.runs.models import Conversation, Run, StopRecord
from agent_core.runs.states import RUN_FINAL
from config.heartbeat import KEY as HEARTBEATS
from config.launcher import parts
from config.launcher.preflight import free_port
from tests.rig.processes import Process
from tests.rig.product import WORKER_SAYS, Parts, worker_spec
from tests.rig.waiting import until

LEASE_SECONDS: Final = 2
QUEUES: Final = "turns,quarantine,exports,maintenance"
TOKEN: Final = "0123456789abcdef0123456789abcdef"


class Product(Parts):
    """Web server, workers and beat of one database and one Redis; each started when asked for."""

    web_url = ""

    @property
    def redis_url(self) -> str:
        """Return the address of its Redis."""
        return self.variables["REDIS_URL"]

    def web(self) -> None:
        """Start the web server."""
        port = free_port()
        self.web_url = f"http://127.0.0.1:{port}"
        self.start(parts.web("127.0.0.1", port))

    def beat(self) -> None:
        """Start the sender of the periodic tasks."""
        self.start(parts.beat(self.folder))

    def worker(
        self,
        name: str = "turns",
        *,
        pool: str = "threads",
        size: int = 8,
        before: Sequence[str] = (),
        more: Sequence[str] = (),
    ) -> Process:
        """Start a worker of every queue under a node name; see `worker_spec`."""
        spec = worker_spec(
            "turns",
            self.redis_url,
            node=f"{name}@own",
            queues=QUEUES,
            pool=pool,
            slots=size,
            before=before,
            more=more,
        )
        return self.start(spec, says=WORKER_SAYS)

    def readiness(self) -> tuple[int, dict[str, object]]:
        """Ask /readyz."""
        page = httpx.get(f"{self.web_url}/readyz", timeout=15, trust_env=False)
        return page.status_code, page.json()

    def kinds_alive(self) -> None:
        """Note a sign of life of the kinds of worker that are not started here."""
        with redis.Redis.from_url(self.redis_url) as client:
            for kind in parts.WORKERS:
                client.hset(HEARTBEATS, f"{kind}@elsewhere", str(int(time.time())))


class Person:
    """A staff member who may do everything, signed in at the web server, with a conversation."""

    def __init__(self, product: Product, user: User | None = None) -> None:
        self.product = product
        self.user = user or User.objects.create_superuser(f"ana-{uuid4().hex[:8]}")
        self.conversation = Conversation.objects.create(owner=self.user, language="en")
        browser = Client()
        browser.force_login(self.user)
        self.cookies = {"sessionid": browser.cookies["sessionid"].value, "csrftoken": TOKEN}

    def client(self, seconds: float = 30) -> httpx.Client:
        """Return a browser of hers."""
        return httpx.Client(
            base_url=self.product.web_url,
            cookies=self.cookies,
            headers={"X-CSRFToken": TOKEN},
            timeout=seconds,
            trust_env=False,
        )

    def send(self, text: str, key: UUID | None = None) -> httpx.Response:
        """Post a message as the page's script does."""
        with self.client() as browser:
            return browser.post(
                f"/api/conversations/{self.conversation.pk}/messages",
                data={"text": text, "client_key": str(key or uuid4())},
                headers={"Accept": "application/json"},
            )

    def asks(self, text: str) -> Run:
        """Post a message that is taken; return its run."""
        answer = self.send(text)
        assert answer.status_code == 200, answer.text
        return Run.objects.get(pk=answer.json()["run"])

    def page(self) -> str:
        """Read the conversation's page."""
        with self.client() as browser:
            answer = browser.get(f"/c/{self.conversation.pk}/")
        assert answer.status_code == 200
        return answer.text

    @property
    def stream_path(self) -> str:
        """Return where the events of the conversation come from."""
        return f"/api/conversations/{self.conversation.pk}/stream"


def ended(*runs: Run, seconds: float = 60) -> list[str]:
    """Wait until runs have ended; return the rules of their stop records."""
    keys = [run.pk for run in runs]

    def over() -> bool:
        return Run.objects.filter(pk__in=keys, state__in=RUN_FINAL).count() == len(keys)

    until(over, "the end of the runs", seconds)
    return list(StopRecord.objects.filter(run__in=keys).values_list("rule", flat=True))
