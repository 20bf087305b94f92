"""What nobody knew when a run ended: it settles on the call, and a retry never does it again."""

from collections.abc import Callable

import pytest

from agent_core.runs import django_host, services
from agent_core.runs.errors import RunRefused
from agent_core.runs.models import Call, Run
from agent_core.runs.services import run_cancel, run_retry
from agent_core.runs.states import CallState, RunState
from payments.models import Payment, Refund
from reviews.models import Review
from tests.journeys.chat import Chat, person, pump, settle_pump
from tests.payments.processor import Processor

SLOW = "PAY-10021"


def stopped_while_unknown(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Ask for a refund whose processor answers late, approve it, and stop once it is unknown."""
    run = chat.say(f"refund 2.00 of {SLOW}")
    ended = django_host.DjangoHost.call_ended

    def stop_pressed(self: django_host.DjangoHost, *args: object) -> None:
        ended(self, *args)  # type: ignore[arg-type]
        run_cancel(run=Run.objects.get(pk=run.pk), actor=chat.owner)

    with monkeypatch.context() as patch:
        patch.setattr(django_host.DjangoHost, "call_ended", stop_pressed)
        services_approve(run)
        pump()
    run.refresh_from_db()
    assert run.state == RunState.CANCELLED
    return run


def services_approve(run: Run) -> None:
    """Approve as the lead."""
    from reviews.services import review_approve

    review = Review.objects.get(run_id=run.pk)
    review_approve(review_id=review.pk, actor=person("lead"), channel="desk")


def refunded(processor: Processor) -> list[int]:
    """Return what really went back, in the processor's own books."""
    return processor.refunded(Payment.objects.get(reference=SLOW).processor_ref)


def test_a_retry_waits_for_what_is_being_checked_and_then_does_not_do_it_again(
    chat: Chat, product: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = stopped_while_unknown(chat, monkeypatch)
    assert chat.answers()[-1].startswith("Stopped as you asked.")
    assert "Nothing was done" not in chat.answers()[-1]
    assert Call.objects.get(run=run).state == CallState.UNKNOWN

    with pytest.raises(RunRefused, match="still being checked"):
        run_retry(run=run, actor=chat.owner)
    assert settle_pump() == 1
    assert Call.objects.get(run=run).state == CallState.DONE

    again = run_retry(run=run, actor=chat.owner)
    pump()
    again.refresh_from_db()
    assert (again.state, again.stop.rule) == (RunState.DONE, "completed")
    assert "2.00 EUR" in chat.answers()[-1]
    assert refunded(product) == [200]
    assert Refund.objects.filter(payment__reference=SLOW).count() == 1
    assert Review.objects.count() == 1


def test_a_retry_asks_the_ledger_when_the_settled_call_never_heard_of_it(
    chat: Chat, product: Processor, monkeypatch: pytest.MonkeyPatch, settings: object
) -> None:
    """The push to the call is lost; the retry asks for itself."""
    from payments import services as ledger

    run = stopped_while_unknown(chat, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "_calls_tell", lambda _intent: None)
        settle_pump()
    assert Call.objects.get(run=run).state == CallState.UNKNOWN

    run_retry(run=run, actor=chat.owner)
    pump()

    assert refunded(product) == [200]
    assert Review.objects.count() == 1


def test_a_call_that_began_nothing_may_be_tried_again(
    chat: Chat, product: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker died before the ledger wrote anything: nothing happened, so it may be done."""
    ended = django_host.DjangoHost.call_began

    def stop_pressed(self: django_host.DjangoHost, *args: object) -> None:
        ended(self, *args)  # type: ignore[arg-type]
        raise RuntimeError("broken before the ledger")

    with monkeypatch.context() as patch:
        patch.setattr(django_host.DjangoHost, "call_began", stop_pressed)
        run = chat.say("charge INV-1001")
    assert run.state == RunState.FAILED

    again = services.run_retry(run=run, actor=chat.owner)
    pump()

    again.refresh_from_db()
    assert (again.state, again.stop.rule) == (RunState.DONE, "completed")
    assert product.charged() == [2500]


def test_a_settled_call_keeps_its_outcome(chats: Callable[[str], Chat], product: Processor) -> None:
    from agent_core.contract import fatal
    from agent_core.runs.settling import call_settled

    chat = chats("agent")
    run = chat.say("charge INV-1001")
    call = Call.objects.get(run=run)

    call_settled(call.pk, "It failed after all.", fatal("charge.declined"))

    call.refresh_from_db()
    assert call.state == CallState.DONE
    assert "was charged" in call.content
