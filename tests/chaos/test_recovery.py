"""What counts as going on again after a hit, and how long that took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

from tests.chaos.recovery import Held, percentile, went_on

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)
HIT = NOON.timestamp() + 1
HELD = Held(uuid4(), "running", NOON)


def _after(seconds: float) -> datetime:
    return datetime.fromtimestamp(HIT, UTC) + timedelta(seconds=seconds)


def test_a_run_that_still_lies_there_has_not_gone_on() -> None:
    assert went_on(HELD, HIT, "running", NOON, None) is None
    assert went_on(HELD, HIT, "queued", NOON, None) is None


def test_a_new_claim_is_going_on() -> None:
    assert went_on(HELD, HIT, "running", _after(9.5), None) == 9.5


def test_an_end_without_a_new_claim_is_going_on() -> None:
    assert went_on(HELD, HIT, "done", NOON, _after(2.0)) == 2.0


def test_what_had_ended_or_waited_before_the_hit_is_left_out() -> None:
    ended = went_on(HELD, HIT, "done", NOON, _after(-0.5))
    assert ended is not None
    assert ended < 0
    waits = went_on(HELD, HIT, "waiting", NOON, None)
    assert waits is not None
    assert waits < 0


def test_one_in_a_hundred_may_take_longer() -> None:
    assert percentile([1.0] * 150 + [90.0]) == 1.0
    assert percentile([1.0] * 90 + [90.0] * 2) == 90.0
    assert percentile([]) == 0.0
