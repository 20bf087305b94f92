"""One worker process holds many turns that wait for their model; no clock decides."""

from __future__ import annotations

import pytest

from tests.bench.servers import product_started
from tests.bench.waiting import WANTED, held

FEW = 8


def test_one_worker_process_holds_eight_turns_that_wait_for_their_model() -> None:
    with product_started(durable=False) as product:
        seen = held(product, FEW, watched=1.0)
        assert product.waiting() == []
    assert (seen.at_once, seen.workers, seen.broken) == (FEW, 1, 0)


@pytest.mark.full
def test_one_worker_process_holds_sixty_four_turns_that_wait_for_their_model() -> None:
    with product_started(durable=False) as product:
        seen = held(product)
    assert (seen.at_once, seen.workers, seen.broken) == (WANTED, 1, 0)
    # A session for each would come to more than the turns themselves.
    assert seen.sessions_peak < WANTED
