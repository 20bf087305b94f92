"""What keeps the product from starting is one sentence and an exit code that is not 0."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from config.home import BASE_DIR
from config.launcher.preflight import free_port
from tests.platform.launching import Launch

pytestmark = pytest.mark.timeout(120)


def _refusal(launch: Launch) -> str:
    assert launch.end() == 1
    last = launch.lines[-1]
    assert last.startswith("Countersign cannot start: ")
    assert "Traceback" not in launch.output
    return last.removeprefix("Countersign cannot start: ")


def test_a_taken_port_is_named_before_anything_starts(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        launch = Launch(home, port)
        assert _refusal(launch) == (
            f"port {port} on 127.0.0.1 cannot be used (Address already in use); "
            "choose another with PORT=8001 make run."
        )
    assert not (home / "postgres").exists()


def test_a_database_that_does_not_answer_is_a_sentence(home: Path) -> None:
    address = f"postgresql://someone:hidden-word@127.0.0.1:{free_port()}/none"
    refusal = _refusal(Launch(home, free_port(), DATABASE_URL=address))
    assert refusal.startswith("DATABASE_URL does not lead to a database: ")
    assert "hidden-word" not in refusal


def test_another_kind_of_database_is_refused(home: Path) -> None:
    launch = Launch(home, free_port(), DATABASE_URL="mysql://root:hidden-word@localhost/x")
    assert _refusal(launch) == (
        "DATABASE_URL must be an address that starts with postgresql:// or postgres://."
    )


def test_a_redis_that_does_not_answer_is_a_sentence(home: Path) -> None:
    address = f"redis://:hidden-word@127.0.0.1:{free_port()}/0"
    refusal = _refusal(Launch(home, free_port(), REDIS_URL=address))
    assert refusal.startswith("REDIS_URL does not lead to a Redis server: ")
    assert "hidden-word" not in refusal


@pytest.mark.parametrize("port", ["0", "70000", "http", "8000.5"])
def test_an_odd_port_is_refused(home: Path, port: str) -> None:
    assert _refusal(Launch(home, free_port(), PORT=port)).startswith("PORT must be ")


def _bound_by_rights() -> tuple[str, ...]:
    """Return what to put before a command so that folder rights bind it, root included."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root writes everywhere, and setpriv, which could take that away, is missing")
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def test_a_folder_that_cannot_be_written_is_a_sentence(home: Path) -> None:
    before = _bound_by_rights()
    home.chmod(0o555)
    launch = Launch(home, free_port(), before=before)
    assert _refusal(launch) == f"the folder {home} cannot be written (Permission denied)."
    assert list(home.iterdir()) == []


def test_commands_without_a_running_product_say_how_to_start_it(home: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.endswith("_URL")}
    env |= {"COUNTERSIGN_HOME": str(home), "DJANGO_SETTINGS_MODULE": "config.settings.demo"}
    done = subprocess.run(
        [sys.executable, "manage.py", "migrate"],
        cwd=BASE_DIR,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "The database does not answer. Start the product with `make run` in this folder first, "
        "or set DATABASE_URL."
    )
    assert "Traceback" not in done.stderr
