"""The moves of an export, pinned: they are persisted names."""

from exports.states import (
    EXPORT_ACTIVE,
    EXPORT_MOVES,
    EXPORT_TERMINAL,
    EXPORT_WORKING,
    ExportState,
    states_before,
)


def test_every_state_has_exactly_these_moves() -> None:
    assert {str(state): {str(to) for to in moves} for state, moves in EXPORT_MOVES.items()} == {
        "queued": {"counting", "failed", "cancelled"},
        "counting": {"writing", "queued", "failed", "cancelled"},
        "writing": {"checking", "queued", "failed", "cancelled"},
        "checking": {"ready", "queued", "failed", "cancelled"},
        "ready": {"expired"},
        "failed": set(),
        "cancelled": set(),
        "expired": set(),
    }


def test_the_sets_follow_from_the_table() -> None:
    assert {str(state) for state in EXPORT_TERMINAL} == {"failed", "cancelled", "expired"}
    assert {str(state) for state in EXPORT_WORKING} == {"counting", "writing", "checking"}
    assert EXPORT_WORKING | {ExportState.QUEUED} == EXPORT_ACTIVE
    assert set(EXPORT_MOVES) == set(ExportState)


def test_only_a_checked_file_becomes_ready() -> None:
    assert states_before(ExportState.READY) == [ExportState.CHECKING]
    assert states_before(ExportState.COUNTING) == [ExportState.QUEUED]
