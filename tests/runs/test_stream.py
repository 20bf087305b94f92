"""The event stream: nothing is lost by a reload, a broken line or an id that nobody knows."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis.asyncio
import redis.exceptions
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from agent_core.runs import hub, live, services, stream
from agent_core.runs.models import Conversation, Event, Run
from agent_core.runs.states import RunState
from agent_core.runs.stream import conversation_stream
from tests.runs.scripting import ScriptedModel

Frame = tuple[str, str, dict[str, Any]]


def read(conversation: Conversation, last: str | None, wanted: int, act: Any = None) -> list[Frame]:
    """Read frames until `wanted` have come; `act` is called once the reader listens."""

    def acting() -> None:
        try:
            act()
        finally:
            connection.close()

    async def collect() -> list[Frame]:
        frames: list[Frame] = []
        frames_come = conversation_stream(conversation.pk, last)
        acted = act is None
        async with asyncio.timeout(15):
            async for chunk in frames_come:
                text = chunk.decode()
                if text.startswith("retry"):
                    if not acted:
                        acted = True
                        asyncio.get_running_loop().call_later(
                            0.5, lambda: asyncio.get_running_loop().run_in_executor(None, acting)
                        )
                    continue
                if text.startswith(":"):
                    continue
                # What has come at once is one piece.
                frames += [parsed(frame) for frame in text.split("\n\n")[:-1]]
                if len(frames) >= wanted:
                    await frames_come.aclose()  # type: ignore[attr-defined]
                    break
        return frames

    return async_to_sync(collect)()


def parsed(text: str) -> Frame:
    """Return id, event and data of one frame."""
    lines = dict(line.split(": ", 1) for line in text.strip().splitlines())
    return lines.get("id", ""), lines["event"], json.loads(lines["data"])


def post(conversation: Conversation, number: int) -> Event:
    """Post one event."""
    return services.event_post(
        conversation_id=conversation.pk,
        kind="export",
        payload={"export": str(number), "state": "writing", "done": number, "total": 9},
    )


def test_a_reader_that_comes_back_gets_what_it_missed_in_order(
    conversation: Conversation, tom: User
) -> None:
    events = [post(conversation, number) for number in range(5)]

    frames = read(conversation, str(events[1].pk), 3)

    assert [frame[0] for frame in frames] == [str(event.pk) for event in events[2:]]
    assert [frame[2]["done"] for frame in frames] == [2, 3, 4]


def test_a_new_reader_starts_with_what_comes_next(conversation: Conversation, tom: User) -> None:
    post(conversation, 1)

    frames = read(conversation, None, 1, act=lambda: post(conversation, 2))

    assert frames[0][2]["done"] == 2


def test_an_id_that_nobody_knows_means_read_the_page_again(
    conversation: Conversation, tom: User
) -> None:
    post(conversation, 1)

    for odd in ("999999999", "abc", "-1", "1e5", "9" * 19, "9" * 5000):
        assert read(conversation, odd, 1)[0][1] == "reread"


def test_half_written_text_is_there_for_a_reader_who_comes_late(
    conversation: Conversation, tom: User
) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    Run.objects.filter(pk=run.pk).update(
        state=RunState.RUNNING, attempt=1, lease_until="2099-01-01T00:00Z"
    )
    live.partial_reset(run.pk, 1)
    live.delta_publish(conversation.pk, run.pk, 1, "Once upon", "Once upon")
    live.delta_publish(conversation.pk, run.pk, 1, "Once upon a time", " a time")

    frames = read(conversation, None, 1)

    assert frames[0][1] == "delta"
    assert frames[0][2] == {
        "run": str(run.pk),
        "attempt": 1,
        "at": 0,
        "text": "Once upon a time",
    }


def test_text_comes_as_it_is_written_with_its_place(conversation: Conversation, tom: User) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    last = str(Event.objects.latest("pk").pk)

    def write() -> None:
        live.delta_publish(conversation.pk, run.pk, 1, "Good", "Good")
        live.delta_publish(conversation.pk, run.pk, 1, "Good day", " day")

    frames = read(conversation, last, 2, act=write)

    assert [(frame[2]["at"], frame[2]["text"]) for frame in frames] == [(0, "Good"), (4, " day")]


def test_events_of_a_whole_turn_never_name_a_tool_or_a_reason_word_to_read(
    script: Callable[..., ScriptedModel], say: Callable[[str], Run], effects: list[str]
) -> None:
    script([("probe_pay", {"amount": "5"})])

    say("pay 5")

    kinds = [event.kind for event in Event.objects.order_by("pk")]
    assert kinds == [
        "message",
        "run",
        "run",
        "call",
        "call",
        "call",
        "message",
        "run",
        "stop",
    ]
    shown = json.dumps(
        [
            {key: value for key, value in event.payload.items() if key not in ("reason", "rule")}
            for event in Event.objects.all()
        ]
    )
    for inner in ("probe_", "policy_block", "Traceback", "://"):
        assert inner not in shown


def test_a_reader_who_may_no_longer_look_is_let_go_at_the_next_heartbeat(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.0)
    asked: list[bool] = []

    def still_open() -> bool:
        asked.append(True)
        return len(asked) < 3

    async def collect() -> list[bytes]:
        async with asyncio.timeout(10):
            return [frame async for frame in conversation_stream(conversation.pk, None, still_open)]

    frames = async_to_sync(collect)()

    assert frames.count(stream.HEARTBEAT) == 2


def test_a_stream_stays_open_while_nobody_can_say_whether_its_reader_may_look(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is away for two heartbeats; then it says no."""
    monkeypatch.setattr(stream, "HEARTBEAT_SECONDS", 0.0)
    asked: list[bool] = []

    def still_open() -> bool:
        asked.append(True)
        if len(asked) < 3:
            raise OperationalError("away")
        return False

    async def collect() -> list[bytes]:
        async with asyncio.timeout(10):
            return [frame async for frame in conversation_stream(conversation.pk, None, still_open)]

    assert async_to_sync(collect)().count(stream.HEARTBEAT) == 2


def test_a_stream_opened_while_redis_is_away_carries_text_once_it_is_back(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first subscription fails; a later one of the same reader must succeed."""
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    last = str(Event.objects.latest("pk").pk)
    monkeypatch.setattr(hub, "AWAY_SECONDS", 0.2)
    whole = redis.asyncio.client.PubSub.subscribe
    away: list[bool] = []

    async def subscribe(self: Any, *channels: Any, **handlers: Any) -> Any:
        if not away:
            away.append(True)
            raise redis.exceptions.ConnectionError("away")
        return await whole(self, *channels, **handlers)

    monkeypatch.setattr(redis.asyncio.client.PubSub, "subscribe", subscribe)

    def write() -> None:
        time.sleep(1)
        live.delta_publish(conversation.pk, run.pk, 1, "Good", "Good")

    frames = read(conversation, last, 1, act=write)

    assert (frames[0][1], frames[0][2]["text"]) == ("delta", "Good")
