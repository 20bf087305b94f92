"""What a leaving worker need not wait for: threads that wait for a model, their run handed back."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from agent_core.runs.leases import Keeper


def claim(run: Any, *, lost: bool, thinking: bool) -> tuple[Any, Any]:
    """Return a run as a host holds it."""
    return run, type("Host", (), {"lost": lost, "thinking": thinking})()


def test_only_a_handed_back_run_in_mid_call_of_a_model_is_left_behind() -> None:
    keeper = Keeper()
    run = SimpleNamespace(pk=uuid4(), attempt=1)
    for lost, thinking in ((True, False), (False, True), (False, False)):
        with keeper.kept(*claim(run, lost=lost, thinking=thinking)):
            assert keeper.handed_back() == 0
    with keeper.kept(*claim(run, lost=True, thinking=True)):
        assert keeper.handed_back() == 1
    assert keeper.handed_back() == 0


def test_a_run_that_is_claimed_here_again_does_not_hide_the_thread_left_behind() -> None:
    """Handed back, delivered here again before the consumer is closed, and handed back again."""
    keeper = Keeper()
    run = SimpleNamespace(pk=uuid4(), attempt=1)
    with keeper.kept(*claim(run, lost=True, thinking=True)):
        with keeper.kept(*claim(run, lost=False, thinking=False)):
            assert keeper.handed_back() == 1
        assert keeper.handed_back() == 1
