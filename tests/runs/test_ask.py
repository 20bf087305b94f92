"""The `ask` command's terminal: what happens is told there, log lines are not."""

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from agent_core.runs.asking import event_line
from agent_core.runs.management.commands import ask
from agent_core.runs.selectors import EventRow


@pytest.fixture
def terminal() -> Iterator[io.StringIO]:
    """Log to a terminal, as every process of the product does."""
    screen = io.StringIO()
    handler = logging.StreamHandler(screen)
    logging.getLogger().addHandler(handler)
    yield screen
    logging.getLogger().removeHandler(handler)


def asking(monkeypatch: pytest.MonkeyPatch, sender: User) -> None:
    """Run the command; its run ends at once, with an error in the log."""

    def follow(*_: Any) -> int:
        logging.getLogger("runs").error("run.failed", extra={"run_id": "7"})
        return 0

    monkeypatch.setattr(ask.Command, "_follow", follow)
    with pytest.raises(SystemExit):
        call_command("ask", "hello", "--as", sender.username)
    logging.getLogger("runs").error("after.it")


def test_log_lines_go_to_the_log_and_never_to_the_terminal(
    terminal: io.StringIO, tom: User, settings: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    settings.LOG_FOLDER = tmp_path
    asking(monkeypatch, tom)
    assert terminal.getvalue() == "after.it\n"
    assert "ERROR runs run.failed run_id=7" in (tmp_path / "ask.log").read_text()


def test_without_a_folder_for_logs_the_terminal_stays_clean_too(
    terminal: io.StringIO, tom: User, settings: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    settings.LOG_FOLDER = tmp_path / "none"
    asking(monkeypatch, tom)
    assert terminal.getvalue() == "after.it\n"
    assert list(tmp_path.iterdir()) == []


STOP = {
    "rule": "completed",
    "headline": "everything asked for is done",
    "explanation": "Every step is complete.",
    "made": 1,
    "saved": 1,
}
"""The fields of a stop event in 0.1.0."""


def stopped(payload: dict[str, Any]) -> EventRow:
    """Return the event of a stop."""
    return EventRow(id=1, conversation="", run=None, kind="stop", payload=payload)


def test_the_stop_of_a_run_is_one_line_whichever_version_wrote_it() -> None:
    newer = {"mode": "never", "notes": ["Measured."], "tokens_saved": 7, "tokens_estimated": True}
    assert event_line(stopped(STOP)) == (
        "■ Stopped: everything asked for is done. Every step is complete. "
        "1 model call made, 1 saved."
    )
    assert event_line(stopped(STOP | newer)) == (
        "■ Stopped: everything asked for is done. Every step is complete. Measured. "
        "1 model call made, 1 saved (about 7 tokens)."
    )
