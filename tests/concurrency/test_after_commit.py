"""B25: what is enqueued is there for the fastest worker, and what was rolled back is not enqueued.

The worker here takes a task within the very call that sends it, on a connection of its own.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from agent_core.runs import queue as sending
from agent_core.runs import services
from agent_core.runs.claims import run_claim
from agent_core.runs.models import Message, Run
from agent_core.runs.queue import WORK_TASK
from agent_core.runs.states import RunState
from desk.views import api
from exports import moves
from exports.models import Export
from exports.services import export_request
from exports.services_write import export_claim
from payments.models import Payment, Team
from reviews.models import Review
from reviews.services import review_approve
from tests.concurrency.turns import DATA
from tests.desk.conftest import asked, maria, payment, teams, tom, waiting_refund

__all__ = ["maria", "payment", "teams", "tom"]

pytestmark = pytest.mark.django_db(transaction=True)

EACH = 67
"""Messages, approvals and exports: some 200 together."""


class FastWorker(threading.Thread):
    """Takes each task while its sender still waits for the sending to return."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.taken: list[tuple[str, str]] = []
        self.missing: list[tuple[str, str]] = []
        self._asked: queue.Queue[tuple[str, str] | None] = queue.Queue()
        self._looked: queue.Queue[bool] = queue.Queue()

    def send(self, task: str, argument: str) -> bool:
        """Stand where a task is sent to Redis."""
        self._asked.put((task, argument))
        assert self._looked.get(timeout=30)
        return True

    def run(self) -> None:
        """Claim what is sent; a row that is not there, or cannot be taken, is missing."""
        while (item := self._asked.get()) is not None:
            task, argument = item
            key = UUID(argument)
            row: Any
            row = run_claim(key, quarantined=False) if task == WORK_TASK else export_claim(key)
            (self.taken if row is not None else self.missing).append(item)
            self._looked.put(True)
        connection.close()

    def leave(self) -> None:
        """End."""
        self._asked.put(None)
        self.join(30)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[FastWorker]:
    """Put the fast worker where tasks are sent."""
    made = FastWorker()
    made.start()
    monkeypatch.setattr(sending, "task_send", made.send)
    monkeypatch.setattr(moves, "task_send", made.send)
    yield made
    made.leave()


def messages_sent(tom: User) -> list[UUID]:
    """Send a message in each of many conversations, each in a transaction of the caller's."""
    runs = []
    for number in range(EACH):
        with transaction.atomic():
            conversation = services.conversation_start(owner=tom)
            runs.append(asked(conversation, f"message {number}").pk)
    return runs


def exports_asked(owner: User) -> list[UUID]:
    """Ask for many exports, each in a transaction of the caller's."""
    keys = []
    for _each in range(EACH):
        with transaction.atomic():
            made, attached = export_request(owner=owner, kind="payments", period="this year")
            assert not attached
            # Out of the way of the next one, which would attach to it.
            Export.objects.filter(pk=made.pk).update(fingerprint=uuid4().hex)
            keys.append(made.pk)
    return keys


def test_b25_two_hundred_tasks_find_their_rows_though_the_worker_is_at_once_there(
    tom: User, maria: User, payment: Payment, worker: FastWorker
) -> None:
    wanted = [*messages_sent(tom), *exports_asked(tom)]
    assert [UUID(key) for _task, key in worker.taken] == wanted

    reviews = []
    for run in Run.objects.all():
        Run.objects.filter(pk=run.pk).update(state=RunState.WAITING, lease_until=None)
        reviews.append(waiting_refund(run, payment, amount_minor=1))
    for review in reviews:
        with transaction.atomic():
            review_approve(review_id=review.pk, actor=maria, channel="desk")
        wanted.append(review.run_id)

    assert worker.missing == []
    assert [UUID(key) for _task, key in worker.taken] == wanted
    assert len(wanted) == 3 * EACH
    assert set(Run.objects.values_list("state", flat=True)) == {"running"}


class Broken(Exception):
    """A view that fails after it has queued something."""


def message(tom: User, maria: User, review: Review) -> object:
    """Send a message."""
    return asked(services.conversation_start(owner=tom), "hello")


def approval(tom: User, maria: User, review: Review) -> object:
    """Approve what waits."""
    return review_approve(review_id=review.pk, actor=maria, channel="desk")


def export(tom: User, maria: User, review: Review) -> object:
    """Ask for an export."""
    return export_request(owner=tom, kind="payments", period="this year")


def rolled_back(job: Callable[[], object]) -> None:
    """Do something in a transaction that then fails."""
    with transaction.atomic():
        job()
        raise Broken


@pytest.mark.parametrize("queues", [message, approval, export])
def test_b25_what_is_rolled_back_after_it_was_queued_is_not_sent(
    tom: User,
    maria: User,
    payment: Payment,
    worker: FastWorker,
    queues: Callable[[User, User, Review], object],
) -> None:
    review = waiting_refund(asked(services.conversation_start(owner=tom), "refund"), payment)
    before = (list(worker.taken), Run.objects.count(), Export.objects.count())
    with pytest.raises(Broken):
        rolled_back(lambda: queues(tom, maria, review))
    assert (worker.taken, Run.objects.count(), Export.objects.count()) == before
    assert worker.missing == []
    review.refresh_from_db()
    assert review.state == "pending"
    # Nothing of it is in the way: the same again is sent.
    queues(tom, maria, review)
    assert len(worker.taken) == len(before[0]) + 1


@pytest.mark.parametrize("whole", [True, False])
def test_b25_a_page_that_fails_after_queueing_runs_its_task_only_if_the_message_is_kept(
    tom: User,
    teams: dict[str, Team],
    worker: FastWorker,
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,
) -> None:
    """`whole`: the site makes each request one transaction. The product itself does not need to."""

    def breaks(*_given: Any, **_named: Any) -> None:
        raise Broken

    talk = services.conversation_start(owner=tom)
    client = Client(raise_request_exception=False)
    client.force_login(tom)
    form = {"text": "hello", "client_key": str(uuid4())}
    post = (reverse("api-messages", args=[talk.pk]), form)
    monkeypatch.setitem(connection.settings_dict, "ATOMIC_REQUESTS", whole)
    with monkeypatch.context() as broken:
        broken.setattr(api, "answer_done", breaks)
        assert client.post(*post, **DATA).status_code == 500

    assert len(worker.taken) == Message.objects.count() == (0 if whole else 1)
    # Sent again with its key, as the page does: one message, one task.
    assert client.post(*post, **DATA).status_code == 200
    assert len(worker.taken) == Message.objects.count() == Run.objects.count() == 1
    assert worker.missing == []
