"""What a leaving worker need not wait for: threads that wait for a model, their run handed back."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from agent_core.errors import StaleAttempt
from agent_core.runs import drain, leases
from agent_core.runs.leases import Keeper
from config import pool


@pytest.fixture
def leaving() -> Iterator[None]:
    """Be a worker that leaves."""
    drain.stay()
    drain.leave()
    yield
    drain.stay()


def claim(run: Any, *, lost: bool, thinking: bool) -> tuple[Any, Any]:
    """Return a run as a host holds it."""
    return run, type("Host", (), {"lost": lost, "thinking": thinking})()


def test_only_a_handed_back_run_in_mid_call_of_a_model_is_left_behind() -> None:
    keeper = Keeper()
    run = SimpleNamespace(pk=uuid4(), attempt=1)
    for lost, thinking in ((True, False), (False, True), (False, False)):
        with keeper.kept(*claim(run, lost=lost, thinking=thinking)):
            assert keeper.handed_back() == 0
    with keeper.kept(*claim(run, lost=True, thinking=True)):
        assert keeper.handed_back() == 1
    assert keeper.handed_back() == 0


def test_a_run_that_is_claimed_here_again_does_not_hide_the_thread_left_behind() -> None:
    """Handed back, delivered here again before the consumer is closed, and handed back again."""
    keeper = Keeper()
    run = SimpleNamespace(pk=uuid4(), attempt=1)
    with keeper.kept(*claim(run, lost=True, thinking=True)):
        with keeper.kept(*claim(run, lost=False, thinking=False)):
            assert keeper.handed_back() == 1
        assert keeper.handed_back() == 1


def test_a_run_that_could_not_be_handed_back_is_not_left_behind_and_is_tried_again(
    leaving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away at the first look; another run of the process is not held up by it."""
    keeper = Keeper()
    away = True
    back: list[object] = []

    def hand_back(run: Any) -> None:
        if away and run is first:
            raise OperationalError("gone")
        back.append(run)

    monkeypatch.setattr(leases, "run_hand_back", hand_back)
    first, second = (SimpleNamespace(pk=uuid4(), attempt=1) for _number in range(2))
    held = [claim(run, lost=False, thinking=True) for run in (first, second)]
    with keeper.kept(*held[0]), keeper.kept(*held[1]):
        keeper._look(held)
        assert (keeper.handed_back(), back) == (1, [second])
        away = False
        keeper._look(held)
        assert (keeper.handed_back(), back) == (2, [second, first])
        keeper._look(held)
        assert back == [second, first]


def test_a_run_that_is_somebody_elses_by_then_is_left_behind(
    leaving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hand_back(_run: object) -> None:
        raise StaleAttempt

    monkeypatch.setattr(leases, "run_hand_back", hand_back)
    keeper = Keeper()
    held = claim(SimpleNamespace(pk=uuid4(), attempt=1), lost=False, thinking=True)
    with keeper.kept(*held):
        keeper._look([held])
        assert keeper.handed_back() == 1


def forked(seen: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None) -> bool:
    """Return what a child process sees after its parent has done something."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(reading, 1)
        os._exit(int(seen()))
    meanwhile()
    os.write(writing, b".")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_the_children_of_a_worker_see_that_it_leaves_and_no_other_workers_do() -> None:
    """The signal comes when the children have been forked; another worker has begun for itself."""
    drain.stay()
    assert not forked(drain.leaving)
    assert forked(drain.leaving, drain.leave)

    def worker_of_its_own() -> bool:
        drain.stay()
        return drain.leaving()

    assert not forked(worker_of_its_own)
    assert drain.leaving()
    drain.stay()
    assert not drain.leaving()


def test_a_child_of_a_pool_does_not_wait_for_a_task_that_is_left_behind(
    leaving: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keeper hands the run back while the task waits for a model that says nothing."""
    monkeypatch.setattr(leases, "run_hand_back", lambda _run: None)
    answered = threading.Event()

    def task(keeper: Keeper) -> str:
        with keeper.kept(*claim(SimpleNamespace(pk=uuid4(), attempt=1), lost=False, thinking=True)):
            answered.wait(60)
        return "done"

    monkeypatch.setattr(leases, "_keeper", Keeper())
    assert pool.beside(task, [leases._keeper], {}) == pool.NOTHING
    answered.set()
    drain.stay()
    monkeypatch.setattr(leases, "_keeper", Keeper())
    assert pool.beside(task, [leases._keeper], {}) == "done"


def test_what_a_task_raises_reaches_the_thread_that_speaks_to_the_parent() -> None:
    with pytest.raises(SystemExit):
        pool.beside(_ends, [3], {})


def _ends(code: int) -> None:
    raise SystemExit(code)
