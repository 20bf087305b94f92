"""Files of a running product: sockets in deep folders, the runtime file, the log line."""

import json
import logging
import os
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import runtime, secret
from config.children import still_runs
from config.home import POSTGRES_SOCKET, postgres_url, redis_url, socket_dir
from config.logs import FieldsFormatter


def test_sockets_lie_in_the_home_when_their_path_is_short() -> None:
    assert socket_dir(Path("/srv/desk/var"), "redis") == Path("/srv/desk/var/run/redis")


def test_sockets_of_a_deep_home_lie_in_a_short_folder_of_their_own() -> None:
    deep = Path("/srv") / ("deep" * 10) / ("deeper" * 10) / "var"
    place = socket_dir(deep, "postgres")
    assert len(os.fsencode(place / POSTGRES_SOCKET)) < 100
    assert place != socket_dir(deep.parent, "postgres")
    assert place == socket_dir(deep, "postgres")


def test_addresses_survive_odd_signs_in_the_folder() -> None:
    assert postgres_url(Path("/srv/my desk")) == (
        "postgresql://postgres@%2Fsrv%2Fmy%20desk%2Frun%2Fpostgres/countersign"
    )
    assert redis_url(Path("/srv/desk")) == "unix:///srv/desk/run/redis/redis.sock?db=0"


def test_the_runtime_file_comes_back_as_it_was_written_and_is_private(tmp_path: Path) -> None:
    written = runtime.Runtime("http://h", "d", "r", "s", [runtime.Process("web", 7, 1.5)])
    runtime.write(written, tmp_path)
    assert runtime.read(tmp_path) == written
    assert runtime.path(tmp_path).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["runtime.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"web_url": "x"}', '{"processes": [{}]}'])
def test_a_damaged_runtime_file_counts_as_none(tmp_path: Path, content: str) -> None:
    runtime.path(tmp_path).write_text(content)
    assert runtime.read(tmp_path) is None


def test_a_process_id_that_went_to_another_is_not_taken_for_ours() -> None:
    import psutil

    started = psutil.Process().create_time()
    assert still_runs(runtime.Process("me", os.getpid(), started)) is not None
    assert still_runs(runtime.Process("me", os.getpid(), started - 60)) is None


def _line(**fields: object) -> str:
    record = logging.makeLogRecord(
        {"name": "runs", "levelname": "INFO", "msg": "run.claimed", "created": 0.0, **fields}
    )
    return FieldsFormatter().format(record)


def test_a_log_line_is_time_level_logger_event_and_fields() -> None:
    assert _line(run_id="7", attempt=2) == (
        "1970-01-01T00:00:00Z INFO runs run.claimed run_id=7 attempt=2"
    )


def test_a_value_cannot_forge_a_log_line() -> None:
    assert _line(name_given="x\n1970 INFO forged").endswith(r"name_given='x\n1970 INFO forged'")


def test_a_trace_follows_its_line() -> None:
    try:
        json.loads("{")
    except ValueError:
        text = _line(exc_info=sys.exc_info())
    assert text.splitlines()[0].endswith("run.claimed")
    assert "JSONDecodeError" in text


def test_a_key_that_belongs_to_somebody_else_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setenv("COUNTERSIGN_HOME", str(tmp_path))
    (tmp_path / "secret-key").write_text("theirs")
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(ImproperlyConfigured) as refused:
        secret.secret_key()
    said = str(refused.value)
    assert said.startswith(f"{tmp_path / 'secret-key'} cannot be read (Permission denied);")
    assert said.count(".") - str(tmp_path).count(".") == 1
