"""Event streams on the real web server: what readers leave behind when they are cut off hard."""

from __future__ import annotations

import http.client
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
import redis

from agent_core.runs.models import Message
from tests.conftest import FULL
from tests.durability.model import HeldModel
from tests.durability.own import broker, db, model, variables
from tests.durability.product import Person, Product, ended
from tests.rig.servers import Server
from tests.rig.sessions import sessions
from tests.rig.waiting import until

__all__ = ["broker", "db", "model", "variables"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROUNDS = 20 if FULL else 3
STREAMS = 50
GONE_SECONDS = 10
"""Within this time a stream whose reader has gone ends, and with it what it held."""

MEMORY_BYTES = 40_000_000
"""What the web server may grow by from the first round to the last."""

POOL = 5
"""The sessions that the web server's pool may hold."""


@pytest.fixture(scope="module")
def product(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Run web server and worker; the server's sessions are few and soon given up."""
    own = {**variables, "DATABASE_POOL_SIZE": str(POOL)}
    with Product(tmp_path_factory.mktemp("product"), own) as made:
        made.web()
        made.worker(size=2)
        made.ready()
        yield made


def opened(person: Person, *, read: bool) -> socket.socket:
    """Ask for the stream; with `read` wait for its first bytes, else leave them unread."""
    place = urlsplit(person.product.web_url)
    line = socket.create_connection((place.hostname, place.port), timeout=60)
    cookies = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
    head = f"GET {person.stream_path} HTTP/1.1\r\nHost: {place.netloc}\r\nCookie: {cookies}\r\n"
    line.sendall(f"{head}Accept: text/event-stream\r\nAccept-Encoding: gzip, br\r\n\r\n".encode())
    if read:
        seen = b""
        while b"retry:" not in seen:
            piece = line.recv(4096)
            assert piece, seen
            seen += piece
        assert b"200 OK" in seen
    return line


def cut(line: socket.socket) -> None:
    """Hang up without a word: the other side gets a reset."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.close()


def subscriptions(broker: Server) -> int:
    """Count the channels that somebody of ours listens to."""
    with redis.Redis.from_url(broker.url) as client:
        return len(client.pubsub_channels("countersign:*"))


def connections_of(broker: Server) -> int:
    """Count the connections to Redis."""
    with redis.Redis.from_url(broker.url) as client:
        return len(client.client_list())


def sockets_of(product: Product) -> int:
    """Count the browsers that the web server still has a line to."""
    port = urlsplit(product.web_url).port
    lines = psutil.Process(product.pids()["web"]).net_connections("tcp")
    return sum(line.status == psutil.CONN_ESTABLISHED and line.laddr.port == port for line in lines)


@contextmanager
def reading(person: Person) -> Iterator[Iterator[str]]:
    """Open the stream as a browser does; yield its lines."""
    with (
        person.client(60) as browser,
        browser.stream(
            "GET", person.stream_path, headers={"Accept-Encoding": "gzip, br"}
        ) as answer,
    ):
        assert answer.status_code == 200
        yield answer.iter_lines()


def test_b26_streams_that_are_cut_off_hard_leave_nothing_behind(
    product: Product, broker: Server, db: str, model: HeldModel
) -> None:
    """50 streams a round, some cut before their first byte, while a turn goes on in the worker."""
    asking, looking = Person(product), Person(product)
    people = [Person(product) for _number in range(4)]
    cut(opened(looking, read=True))
    until(lambda: sockets_of(product) == 0, "the end of the first stream", GONE_SECONDS * 3)
    listened, linked = subscriptions(broker), connections_of(broker)
    asked = model.asked
    model.hold()
    run = asking.asks("say the turn goes on")
    try:
        until(lambda: model.asked > asked, "the model call")
        rounds(product, broker, db, people, listened)
    finally:
        model.release()
    assert connections_of(broker) <= linked + 4
    assert "Traceback" not in product.log("web"), product.log("web")[-3000:]

    assert ended(run) == ["answered"]
    assert Message.objects.get(run=run, role="assistant").text == "the turn goes on"
    assert "the turn goes on" in asking.page()
    with httpx.Client(base_url=product.web_url, trust_env=False) as anybody:
        assert anybody.get("/healthz").status_code == 200


def rounds(product: Product, broker: Server, db: str, people: list[Person], listened: int) -> None:
    """Open and cut off streams, again and again; sessions, channels and memory stay bounded."""
    # With those of the worker that is in the model call.
    base = sessions(db)
    web = psutil.Process(product.pids()["web"])
    settled = 0
    for _round in range(ROUNDS):
        with ExitStack() as stack:
            lines = []
            for place in range(STREAMS):
                line = opened(people[place % 4], read=place % 3 > 0)
                stack.callback(line.close)
                lines.append(line)
            assert sessions(db) <= base + POOL
            for line in lines:
                cut(line)
        until(lambda: sockets_of(product) == 0, "the end of the streams", GONE_SECONDS * 3)
        until(lambda: subscriptions(broker) <= listened, "the unsubscribing", GONE_SECONDS * 3)
        settled = settled or web.memory_info().rss
    assert web.memory_info().rss - settled < MEMORY_BYTES


def test_b26_a_token_is_at_the_reader_while_the_model_still_speaks(
    product: Product, model: HeldModel
) -> None:
    """The model says one word and is then held: the word has to come, whatever stands between."""
    person = Person(product)
    model.may_finish.clear()
    try:
        with reading(person) as lines:
            assert next(lines).startswith("retry:")
            run = person.asks("say first second third")
            seen = []
            for line in lines:
                seen.append(line)
                if line.startswith("data:") and '"first"' in line:
                    break
            assert "event: delta" in seen
            assert not model.may_finish.is_set()
            model.release()
            assert ended(run) == ["answered"]
    finally:
        model.release()


def test_b26_a_stream_tells_everybody_on_its_way_to_keep_nothing_back(product: Product) -> None:
    """No cache, no transformation, no buffer of a proxy, no compression though it is offered."""
    person = Person(product)
    place = urlsplit(product.web_url)
    assert place.hostname is not None
    line = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
    cookies = "; ".join(f"{name}={value}" for name, value in person.cookies.items())
    line.request(
        "GET", person.stream_path, headers={"Cookie": cookies, "Accept-Encoding": "gzip, br"}
    )
    answer = line.getresponse()
    control = {word.strip() for word in str(answer.headers["Cache-Control"]).split(",")}
    assert control == {"no-store", "no-transform"}
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.headers["Content-Encoding"] is None
    assert str(answer.headers["Content-Type"]).startswith("text/event-stream")
    line.close()


def test_b22_pages_and_streams_at_once_keep_within_the_pool_and_give_it_back(
    product: Product, db: str
) -> None:
    """50 pages asked for at once beside 50 open streams, on a pool of five sessions."""
    people = [Person(product) for _number in range(4)]
    base = sessions(db)
    most = 0
    lines = [opened(people[number % 4], read=True) for number in range(STREAMS)]
    try:
        with ThreadPoolExecutor(STREAMS) as many:
            pages = [many.submit(people[number % 4].page) for number in range(STREAMS)]
            while not all(page.done() for page in pages):
                most = max(most, sessions(db))
                time.sleep(0.02)
            texts = [page.result() for page in pages]
    finally:
        for line in lines:
            cut(line)
    for number, text in enumerate(texts):
        # Nobody got another's page.
        assert f"/api/conversations/{people[number % 4].conversation.pk}/stream" in text
    assert most <= base + POOL + 1
    assert "Traceback" not in product.log("web"), product.log("web")[-3000:]
