"""A pause of refunds and what is on its way: nothing is tried for the first time while it holds.

What was written before stays open and goes out when refunds go on; what a try has begun on is asked
about until it is settled. Every test ends in the processor's own books.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core import faults
from agent_core.contract import RunContext
from payments import services
from payments.models import Intent
from payments.services import (
    charge_make,
    intents_settle,
    refund_make,
    refunds_go_on,
    refunds_stop,
)
from tests.payments import cast
from tests.payments.cast import Desk
from tests.payments.processor import Processor

Happens: TypeAlias = Callable[[str, Callable[[], Any]], None]


@pytest.fixture
def olga(db: None) -> User:
    """Return somebody of operations."""
    return User.objects.create_superuser("olga")


def refund(desk: Desk, review: Any, **more: Any) -> Any:
    """Refund 30.00 EUR of the desk's payment."""
    values: dict[str, Any] = {"context": desk.context(), "payment_id": desk.payment.pk} | more
    return refund_make(amount_minor=3000, currency="EUR", review_id=review, **values)


def charged(desk: Desk) -> Any:
    """Charge 25.00 EUR that the customer owes."""
    return charge_make(
        context=desk.context(),
        invoice_id=desk.owed().pk,
        method_id=desk.method.pk,
        amount_minor=2500,
        currency="EUR",
    )


class Died(BaseException):
    """The process ended here."""


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Happens:
    """Return what lets something happen, once, at a fault point."""

    def happens(place: str, what: Callable[[], Any]) -> None:
        def act(name: str) -> None:
            if name == place:
                monkeypatch.setattr(faults, "_act", None)
                what()

        monkeypatch.setattr(faults, "_act", act)

    return happens


def dies() -> None:
    """End the process, as far as the ledger can tell."""
    raise Died


@pytest.fixture
def written(desk: Desk, processor: Processor, at: Happens) -> RunContext:
    """Return the call whose worker died when its refund was written and not tried."""
    call, review = desk.context(), desk.approved(desk.payment, 3000)
    at("refund.intent:after", dies)
    with pytest.raises(Died):
        refund(desk, review, context=call)
    assert Intent.objects.get().tries == 0
    return call


def settled_later() -> int:
    """Let every wait be over, and do what beat does then."""
    Intent.objects.update(next_try_at=timezone.now())
    return intents_settle()


def test_what_was_written_and_never_tried_is_not_sent_until_refunds_go_on(
    desk: Desk, processor: Processor, olga: User, written: RunContext
) -> None:
    """The worker dies between the row and its first try; the pause; the settle task comes."""
    pause = refunds_stop(actor=olga, reason="the processor books twice")
    assert [settled_later() for _tick in range(2)] == [0, 0]
    assert processor.refunded(desk.payment.processor_ref) == []
    assert (Intent.objects.get().state, Intent.objects.get().tries) == ("open", 0)

    refunds_go_on(actor=olga, reason="well again", pause_id=pause.pk)
    assert intents_settle() == 1
    assert processor.refunded(desk.payment.processor_ref) == [3000]
    assert [notice[0] for notice in cast.NOTICES] == [written.conversation_id]


def test_who_takes_over_from_a_dead_worker_does_not_send_it_either(
    desk: Desk, processor: Processor, olga: User, written: RunContext
) -> None:
    """As before, but the run is taken over while the pause holds: its call is being checked."""
    pause = refunds_stop(actor=olga, reason="the processor books twice")
    told = refund(desk, Intent.objects.get().review_id, context=written)
    assert (told.state, told.code) == ("unknown", "refund.being_checked")
    assert settled_later() == 0
    assert processor.refunded(desk.payment.processor_ref) == []
    assert cast.NOTICES == []

    refunds_go_on(actor=olga, reason="well again", pause_id=pause.pk)
    assert settled_later() == 1
    assert processor.refunded(desk.payment.processor_ref) == [3000]
    assert [notice[0] for notice in cast.NOTICES] == [written.conversation_id]
    assert refund(desk, None, context=written).state == "succeeded"


@pytest.mark.parametrize(
    "case",
    [("refund.intent:after", ("unknown", [])), ("intent.try:after", ("succeeded", [3000]))],
)
def test_the_first_try_is_where_a_refund_begins_to_be_sent(
    desk: Desk, processor: Processor, olga: User, at: Happens, case: tuple[str, Any]
) -> None:
    """The pause begins before the first try is noted, or after it and before the line."""
    (place, ends), review = case, desk.approved(desk.payment, 3000)
    at(place, lambda: refunds_stop(actor=olga, reason="the processor books twice"))
    made = refund(desk, review)
    assert (made.state, processor.refunded(desk.payment.processor_ref)) == ends


def test_what_waits_for_the_end_of_a_pause_keeps_nothing_else_from_being_settled(
    desk: Desk,
    processor: Processor,
    olga: User,
    written: RunContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tick settles one intent; the oldest one waits for the pause to end, a charge is behind."""
    monkeypatch.setattr(services, "MOST_A_TICK", 1)
    refunds_stop(actor=olga, reason="the processor books twice")
    processor.fault("drop_after")
    assert charged(desk).state == "unknown"
    assert settled_later() == 1
    assert Intent.objects.get(state="succeeded").operation == "charge"
    assert processor.refunded(desk.payment.processor_ref) == []
