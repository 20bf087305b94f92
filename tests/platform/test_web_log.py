"""The web process writes its log as one format, uvicorn's lines among them."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from config.launcher import parts
from config.launcher.preflight import free_port

PATIENCE = 120


def test_every_line_of_a_web_process_is_json_when_json_is_asked_for(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    spec = parts.web("127.0.0.1", free_port())
    env = {**os.environ, "DATABASE_URL": database_url, "REDIS_URL": redis_url}
    env |= {"DJANGO_SETTINGS_MODULE": "config.settings.test", "LOG_FORMAT": "json"}
    written = tmp_path / "web.log"
    with written.open("wb") as log:
        process = subprocess.Popen(spec.command, cwd=spec.folder, env=env, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE
        while not spec.answers():
            assert time.monotonic() < until, written.read_text("utf-8")
            assert process.poll() is None, written.read_text("utf-8")
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()

    lines = [json.loads(line) for line in written.read_text("utf-8").splitlines()]
    events = [line["event"] for line in lines if line["logger"] == "uvicorn.error"]
    assert any(event.startswith("Started server process") for event in events)
    assert "Shutting down" in events
    assert not any("color_message" in line for line in lines)
