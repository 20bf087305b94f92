"""What other tests rely on to fail: waiting ends, and no error of a caller or a process is lost."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest
import redis

from config.children import Spec
from tests.rig.processes import Process
from tests.rig.product import Parts, worker_spec
from tests.rig.spoken import Spoken
from tests.rig.threads import Caller, at_once, elsewhere
from tests.rig.waiting import until

SLEEPS = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


def breaks() -> None:
    raise ValueError("broken")


def test_waiting_ends_with_what_did_not_come() -> None:
    with pytest.raises(AssertionError, match="not within 0 seconds: the parcel"):
        until(lambda: False, "the parcel", 0)
    with pytest.raises(AssertionError, match="asked only then"):
        until(lambda: False, lambda: "asked only then", 0)


def test_a_server_that_is_away_counts_as_not_yet_and_any_other_error_is_one() -> None:
    answers = iter([redis.ConnectionError(), None])

    def holds() -> bool:
        if (error := next(answers)) is not None:
            raise error
        return True

    until(holds, "the server")
    with pytest.raises(ValueError, match="broken"):
        until(breaks, "nothing")


def test_callers_start_together_and_each_has_its_outcome() -> None:
    both = threading.Barrier(2)
    assert at_once(lambda: both.wait(20) >= 0, lambda: both.wait(20) >= 0) == [True, True]
    error, result = at_once(breaks, lambda: 1)
    assert isinstance(error, ValueError)
    assert result == 1
    with pytest.raises(ValueError, match="broken"):
        elsewhere(breaks)


def test_a_caller_that_does_not_come_back_is_told() -> None:
    release = threading.Event()
    caller = Caller(lambda: release.wait(20))
    assert caller.waits(0)
    with pytest.raises(AssertionError, match="never came back"):
        caller.outcome(0)
    release.set()
    assert caller.outcome() is True


def sleeper() -> Spec:
    return Spec(name="sleeper", command=SLEEPS, answers=lambda: False)


def test_a_process_is_killed_started_again_and_asked_to_leave(tmp_path: Path) -> None:
    process = Process(sleeper(), tmp_path, says="up")
    assert process.dead()
    process.start().ready(20)
    process.kill()
    assert (process.dead(), process.exit_code()) == (True, -signal.SIGKILL)
    process.start().ready(20)
    assert not process.dead()
    process.send(signal.SIGSTOP)
    process.send(signal.SIGCONT)
    assert process.leave(20) == -signal.SIGTERM
    assert not process.send(signal.SIGTERM)
    assert process.said() == "up\nup\n"


def test_parts_end_with_the_body_and_a_second_of_a_name_is_kept_apart(tmp_path: Path) -> None:
    with Parts(tmp_path, {}) as parts:
        first, second = parts.start(sleeper(), says="up"), parts.start(sleeper(), says="up")
        parts.ready(20)
        assert list(parts.pids()) == ["sleeper", "sleeper#2"]
        second.kill()
        with pytest.raises(AssertionError, match="sleeper#2 has ended"):
            parts.pids()
    assert first.dead()


def test_a_worker_is_the_launchers_but_for_what_is_named() -> None:
    spec = worker_spec("turns", "redis://h/0", node="one@own", slots=3, before=["nice"])
    command = list(spec.command)
    assert spec.name == "worker-one"
    assert command[0] == "nice"
    assert command[command.index("-n") + 1] == "one@own"
    assert command[command.index("-Q") + 1] == "turns"
    assert command[command.index("-c") + 1] == "3"


def test_a_module_that_ends_instead_of_answering_is_told_with_its_log(tmp_path: Path) -> None:
    spoken = Spoken("json.tool", "--no-such-option", variables={}, log=tmp_path / "log")
    with pytest.raises(ChildProcessError, match=r"(?s)json\.tool ended with 2:.*no-such-option"):
        spoken.heard()
    spoken.close()
