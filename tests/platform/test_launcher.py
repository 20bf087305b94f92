"""`make run` as a person sees it: it starts, looks after itself, and ends without a trace."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from config import runtime
from config.home import BASE_DIR
from config.launcher.preflight import free_port
from tests.platform.launching import Launch, all_ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _get(url: str) -> httpx.Response:
    return httpx.get(url, timeout=10, trust_env=False)


def _manage(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    env |= {"COUNTERSIGN_HOME": str(home), "DJANGO_SETTINGS_MODULE": "config.settings.demo"}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=BASE_DIR,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _record(home: Path, name: str) -> runtime.Process:
    running = runtime.read(home)
    assert running is not None
    return next(record for record in running.processes if record.name == name)


def test_it_prints_the_address_the_people_and_the_model(product: Launch) -> None:
    assert f"ready: http://127.0.0.1:{product.port}/" in product.output
    for name in ("agent", "lead", "admin"):
        assert f"sign in as {name}" in product.output
    assert "answers come from offline:planner (a planner on this machine" in product.output


def test_the_sign_in_page_answers_with_a_strict_content_policy(product: Launch) -> None:
    page = _get(f"http://127.0.0.1:{product.port}/login/")
    assert page.status_code == 200
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


def test_readiness_knows_database_redis_and_each_worker(product: Launch) -> None:
    page = _get(f"http://127.0.0.1:{product.port}/readyz")
    assert page.json() == {
        "ready": True,
        "database": True,
        "redis": True,
        "worker_turns": True,
        "worker_quarantine": True,
        "worker_exports": True,
        "worker_maintenance": True,
        "refunds_paused": False,
        "longest_wait_seconds": 0,
    }


def test_a_second_start_in_the_same_folder_is_refused(product: Launch) -> None:
    second = Launch(product.home, free_port())
    assert second.end() == 1
    assert second.output == (
        "Countersign cannot start: it already runs in this folder "
        f"(process {product.process.pid}); end that one with Ctrl-C first."
    )
    assert _get(f"http://127.0.0.1:{product.port}/healthz").text == "ok"


def test_commands_find_the_running_product(product: Launch) -> None:
    done = _manage(product.home, "migrate", "--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_listens_beyond_this_machine(product: Launch) -> None:
    import psutil

    running = runtime.read(product.home)
    assert running is not None
    places = [
        connection.laddr.ip
        for record in running.processes
        for connection in psutil.Process(record.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert places
    assert set(places) == {"127.0.0.1"}


def test_a_part_that_is_killed_is_started_again_and_said(product: Launch) -> None:
    before = _record(product.home, "worker-exports")
    os.kill(before.pid, signal.SIGKILL)
    product.wait_for("worker-exports: ended unasked (signal 9)", 20)
    product.wait_for("worker-exports: started again", 20)
    assert _record(product.home, "worker-exports").pid != before.pid


def test_a_killed_launcher_does_not_hinder_the_next_start_and_ctrl_c_ends_all(home: Path) -> None:
    first = Launch(home, free_port())
    first.wait_for("end with Ctrl-C")
    key = (home / "secret-key").read_text()
    web = _record(home, "web")
    first.process.kill()
    assert first.process.wait(10) == -signal.SIGKILL
    assert all_ended(home, 0) != []

    second = Launch(home, first.port)
    second.wait_for("end with Ctrl-C")
    assert "web: was left by an earlier start, ended" in second.output
    assert _record(home, "web").pid != web.pid
    assert (home / "secret-key").read_text() == key

    second.interrupt()
    assert second.end() == 0
    assert all_ended(home) == []
    assert runtime.read(home) is None
    order = [line for line in second.lines if line.endswith(": ending")]
    names = [line.removeprefix("[countersign] ").removesuffix(": ending") for line in order]
    assert names[0:2] == ["web", "beat"]
    assert names[-2:] == ["redis", "postgres"]


@pytest.mark.parametrize("line", ["starting the embedded server", "preparing", "the workers"])
def test_ctrl_c_during_the_start_leaves_no_process(home: Path, line: str) -> None:
    launch = Launch(home, free_port())
    launch.wait_for(line)
    time.sleep(0.3)
    launch.interrupt()
    assert launch.end() == 0
    assert all_ended(home) == []
    assert "Traceback" not in launch.output


def test_sigterm_ends_all_with_the_shells_code(home: Path) -> None:
    launch = Launch(home, free_port())
    launch.wait_for("preparing")
    launch.process.terminate()
    assert launch.end() == 128 + signal.SIGTERM
    assert all_ended(home) == []
