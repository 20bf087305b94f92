"""Every line written while a run is worked on names it, whichever thread or library wrote it."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from agent_core.runs import services, work
from agent_core.runs.logged import log_fields, logged
from agent_core.runs.models import Call, Run
from agent_core.runs.states import RunState
from config.logs import JsonFormatter, RunFilter
from payments import selectors
from payments.models import Refund
from reviews.models import Review
from reviews.services import review_approve
from tests.payments.cast import Desk
from tests.payments.processor import Processor, processor, processor_process
from tests.rig.threads import at_once
from tests.runs.scripting import ScriptedModel

__all__ = ["processor", "processor_process"]

NOT_OF_A_RUN = ("psycopg.pool",)
"""Its own threads keep the pool, whoever borrows from it."""


class Kept(logging.Handler):
    """Writes as the product does, and keeps the lines with the thread that wrote each."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[str] = set()
        self.lines: list[dict[str, Any]] = []
        self.addFilter(RunFilter())
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self.threads.add(threading.current_thread().name)
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def kept() -> Iterator[Kept]:
    """Return what is logged in this test, down to what libraries say at DEBUG."""
    handler, root = Kept(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(level)
    root.removeHandler(handler)


def asked(desk: Desk, text: str) -> Run:
    """Send a message as Ana, in a conversation of its own."""
    conversation = services.conversation_start(owner=desk.ana)
    return services.message_send(conversation=conversation, sender=desk.ana, text=text)


@pytest.fixture
def desk(processor: Processor, transactional_db: None) -> Desk:
    """Return Ana who asks and Lea who decides, both with every right."""
    made = Desk()
    for person in (made.ana, made.lea):
        User.objects.filter(pk=person.pk).update(is_superuser=True)
        person.refresh_from_db()
        made.team.members.add(person)
    return made


def of_runs(kept: Kept) -> list[dict[str, Any]]:
    return [line for line in kept.lines if not line["logger"].startswith(NOT_OF_A_RUN)]


def test_every_line_of_a_turn_with_a_refund_and_its_review_names_the_run(
    desk: Desk, kept: Kept
) -> None:
    run = asked(desk, f"refund 5.00 EUR of {desk.payment.reference} because the box was crushed")
    kept.lines.clear()
    work.run_work(run.pk)
    before = of_runs(kept)
    review_approve(review_id=Review.objects.get(run_id=run.pk).pk, actor=desk.lea, channel="desk")
    kept.lines.clear()
    work.run_work(run.pk)
    after = of_runs(kept)

    run.refresh_from_db()
    assert (run.state, Refund.objects.get().state) == (RunState.DONE, "succeeded")
    for lines, attempt in ((before, 1), (after, 2)):
        assert {line.get("run_id") for line in lines} == {str(run.pk)}
        claimed = lines[[line["event"] for line in lines].index("run.claimed") :]
        assert {line.get("attempt") for line in claimed} == {attempt}
        assert {line.get("conversation_id") for line in claimed} == {str(run.conversation_id)}
    loggers = {line["logger"].partition(".")[0] for line in after}
    assert {"agent_core", "payments"} <= loggers


def test_tools_in_threads_of_the_pool_name_the_run(
    say: Callable[[str], Run], script: Callable[..., ScriptedModel], kept: Kept
) -> None:
    """Two calls of one batch run at once, each in a thread of LangGraph's."""
    script([("probe_broken", {"amount": "1"}), ("probe_broken", {"amount": "2"})], "Sorry.")
    run = say("do both")
    broken = [line for line in kept.lines if line["event"] == "tool.failed"]
    assert len(broken) == 2
    assert kept.threads - {threading.current_thread().name}
    assert {line.get("run_id") for line in broken} == {str(run.pk)}
    assert log_fields() == {}


def test_no_line_holds_what_people_wrote(desk: Desk, kept: Kept) -> None:
    run = asked(desk, f"refund 5.00 EUR of {desk.payment.reference} because the box was crushed")
    work.run_work(run.pk)
    written = json.dumps([line for line in kept.lines if line["level"] != "DEBUG"])
    assert "crushed" not in written
    assert Call.objects.filter(arguments__reason__icontains="crushed").exists()


def test_two_runs_side_by_side_are_not_mixed(
    desk: Desk, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both stand in their tool at once; each logs there, as a library would."""
    both = threading.Barrier(2, timeout=60)
    log = logging.getLogger("library")
    whole = selectors.customer_find

    def looks(*args: Any, **options: Any) -> Any:
        both.wait()
        log.info("looked up", extra={"in_tool": log_fields().get("run_id")})
        both.wait()
        return whole(*args, **options)

    monkeypatch.setattr(selectors, "customer_find", looks)
    runs = [asked(desk, f"find customer {desk.customer.email}") for _ in range(2)]

    def works(run: Run) -> None:
        work.run_work(run.pk)
        log.info("ended", extra={"of": str(run.pk)})

    at_once(*[partial(works, run) for run in runs], seconds=90)

    seen = [line for line in kept.lines if line["event"] == "looked up"]
    assert {line["run_id"] for line in seen} == {str(run.pk) for run in runs}
    assert all(line["run_id"] == line["in_tool"] for line in seen)
    ended = [line for line in kept.lines if line["event"] == "ended"]
    assert len(ended) == 2
    assert not any("run_id" in line for line in ended)


def test_after_a_run_that_broke_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = uuid4()

    def breaks(run_id: UUID, **_options: object) -> None:
        assert log_fields() == {"run_id": str(broken)}
        raise RuntimeError

    monkeypatch.setattr(work, "run_claim", breaks)
    with pytest.raises(RuntimeError):
        work.run_work(broken)
    assert log_fields() == {}


def test_a_line_that_names_a_run_itself_means_that_one(kept: Kept) -> None:
    """A sweep speaks of many runs; so may whoever works on another one."""
    with logged(uuid4()):
        logging.getLogger("x").warning("run.lease_expired", extra={"run": "7"})
    (line,) = kept.lines
    assert (line["run_id"], "run" in line, "attempt" in line) == ("7", False, False)


def test_a_line_of_json_is_one_object_with_its_trace_as_text() -> None:
    try:
        raise RuntimeError("broken\nin two")
    except RuntimeError:
        trace = sys.exc_info()
    record = logging.makeLogRecord(
        {"name": "runs", "levelname": "ERROR", "msg": "run.%s", "args": ("failed",), "created": 0.5}
        | {"exc_info": trace, "amount": 5, "level": "forged", "of": uuid4}
    )
    text = JsonFormatter().format(record)
    line = json.loads(text)
    assert "\n" not in text
    assert line.pop("exception").endswith("RuntimeError: broken\nin two")
    assert line.pop("of") == str(uuid4)
    assert line == {
        "time": "1970-01-01T00:00:00.500+00:00",
        "level": "ERROR",
        "logger": "runs",
        "event": "run.failed",
        "amount": 5,
    }
