"""The web process writes its log as one format, uvicorn's lines among them."""

import json
from pathlib import Path

import pytest

from config.launcher import parts
from config.launcher.preflight import free_port
from tests.rig.processes import Process

PATIENCE = 120


@pytest.mark.django_db
def test_every_line_of_a_web_process_is_json_when_json_is_asked_for(
    tmp_path: Path, database_url: str, redis_url: str
) -> None:
    spec = parts.web("127.0.0.1", free_port())
    web = Process(
        spec,
        tmp_path,
        DATABASE_URL=database_url,
        REDIS_URL=redis_url,
        DJANGO_SETTINGS_MODULE="config.settings.test",
        LOG_FORMAT="json",
    )
    web.start()
    try:
        web.ready(PATIENCE)
        web.leave(PATIENCE)
    finally:
        web.kill()

    lines = [json.loads(line) for line in web.said().splitlines()]
    events = [line["event"] for line in lines if line["logger"] == "uvicorn.error"]
    assert any(event.startswith("Started server process") for event in events)
    assert "Shutting down" in events
    assert not any("color_message" in line for line in lines)
