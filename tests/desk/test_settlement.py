"""The card of an approved refund names the steps that it has taken, up to a late failure."""

from __future__ import annotations

import pytest

from desk.settlement import settlement_of
from payments.services import observed
from reviews.models import Review
from tests.payments.cast import Desk
from tests.payments.conftest import ledger
from tests.payments.processor import Processor, processor, processor_process
from tests.payments.test_observed import SOURCE, refund, told

__all__ = ["ledger", "processor", "processor_process"]

pytestmark = pytest.mark.django_db


def shown() -> tuple[str, bool, list[str]]:
    """Return the state, whether it is final, and the steps of the only review's card."""
    found = settlement_of(Review.objects.get())
    assert found is not None
    moments = [moment for _label, moment in found.steps]
    assert moments == sorted(moments)
    return found.state, found.final, [label for label, _moment in found.steps]


def test_a_refund_walks_over_its_card(ledger: Processor) -> None:
    desk = Desk(fault="refund_pending")
    refund(desk)
    assert shown() == ("accepted", False, ["Approved", "Sent", "Accepted"])
    observed(told(desk, "succeeded"), source=SOURCE)
    assert shown() == ("succeeded", True, ["Approved", "Sent", "Accepted", "Settled"])
    observed(told(desk, "failed"), source=SOURCE)
    steps = ["Approved", "Sent", "Accepted", "Settled", "Failed"]
    assert shown() == ("failed_later", True, steps)


def test_what_is_being_checked_says_so(ledger: Processor) -> None:
    desk = Desk()
    ledger.fault("drop_after")
    refund(desk)
    assert shown() == ("unknown", False, ["Approved", "Sent", "Being checked"])
