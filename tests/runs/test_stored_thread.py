"""A thread that an earlier version paused: today's code goes on and does what was approved.

`tests/golden/threads/paused.json` holds the run and its checkpoints as they were stored;
`--update-golden` writes it anew, once the version before is no longer supported.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection

from agent_core.runs import work
from agent_core.runs.models import Call, Conversation, Event, Message, Run, StopRecord
from agent_core.runs.states import RunState
from reviews.models import Review
from reviews.services import review_approve
from tests.runs.scripting import ScriptedModel

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "threads" / "paused.json"
TABLES: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


def plain(value: Any) -> Any:
    """Return what JSON can hold; bytes are told apart."""
    if isinstance(value, bytes | memoryview):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    return value


def dumped(run: Run) -> dict[str, Any]:
    """Return everything that is stored of a paused run."""
    rows: list[Any] = [run.requester, Conversation.objects.get(pk=run.conversation_id)]
    for model in (Message, Run, Call, Event, Review):
        rows += model._default_manager.all()
    stored: dict[str, Any] = {"rows": json.loads(serializers.serialize("json", rows))}
    with connection.cursor() as cursor:
        for table in TABLES:
            # The names are ours, from the line above.
            cursor.execute(f"SELECT * FROM {table} WHERE thread_id = %s", [str(run.pk)])  # noqa: S608
            names = [column.name for column in cursor.description or ()]
            stored[table] = [
                dict(zip(names, map(plain, row), strict=True)) for row in cursor.fetchall()
            ]
    return stored


def restored(stored: dict[str, Any]) -> Run:
    """Put everything back as it was."""
    for row in serializers.deserialize("json", json.dumps(stored["rows"])):
        row.save()
    with connection.cursor() as cursor:
        for table in TABLES:
            for row in stored[table]:
                values = {name: _value(value) for name, value in row.items()}
                places = ", ".join(["%s"] * len(values))
                sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"  # noqa: S608
                cursor.execute(sql, list(values.values()))
    return Run.objects.get()


def _value(value: Any) -> Any:
    if isinstance(value, dict) and set(value) == {"bytes"}:
        return base64.b64decode(value["bytes"])
    return json.dumps(value) if isinstance(value, dict) else value


def test_a_thread_that_was_paused_by_an_earlier_version_goes_on(
    transactional_db: None,
    script: Callable[..., ScriptedModel],
    effects: list[str],
    request: pytest.FixtureRequest,
) -> None:
    if request.config.getoption("--update-golden"):
        script([("probe_refund", {"amount": "5.00"})])
        run = request.getfixturevalue("say")("refund 5.00")
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps(dumped(run), indent=1) + "\n", encoding="utf-8")
        return
    model = script("Nothing is left to say.")
    run = restored(json.loads(GOLDEN.read_text(encoding="utf-8")))
    assert (run.state, effects) == (RunState.WAITING, [])
    lead = User.objects.create_superuser("lead", id=900_001)

    review_approve(review_id=Review.objects.get().pk, actor=lead, channel="desk")
    work.run_work(run.pk)

    run.refresh_from_db()
    assert (run.state, run.attempt) == (RunState.DONE, 2)
    assert effects == ["refund 5.00 approved"]
    assert StopRecord.objects.get(run=run).rule == "completed"
    assert model.requests == []
