"""The offline model finds its way in what the real look-ups say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from payments.models import Payment
from tests.core.fake_desk import Desk
from tests.payments.assistant.stage import Conversation

MAIL = "good-card@example.com"


@dataclass
class RealDesk(Desk):
    """Look-ups answer with the real text; an effect only says that it was reached."""

    talk: Conversation | None = None

    def _text(self, tool: str, arguments: Mapping[str, Any]) -> str:
        if tool not in ("customer_find", "payments_list"):
            return "Reached."
        assert self.talk is not None
        return self.talk.run(tool, None, **arguments)[0]


@pytest.fixture
def desk(talk: Conversation) -> RealDesk:
    """Return the desk with the demo's records behind its look-ups."""
    return RealDesk(talk=talk)


def asked(desk: RealDesk, words: str) -> tuple[str, dict[str, str]]:
    """Return the last call that the model makes for these words."""
    assert desk.talk is not None
    desk.talk.say(words)
    return desk.ask(words)[-1][0]


def test_the_newest_payment_is_found_even_after_a_later_refund(desk: RealDesk) -> None:
    newest = Payment.objects.filter(customer__email=MAIL).latest("paid_at")
    assert asked(desk, f"refund 5.00 of the last payment of {MAIL}") == (
        "refund_request",
        {"payment": newest.reference, "amount": "5.00"},
    )


def test_the_open_invoice_of_a_customer_is_found(desk: RealDesk) -> None:
    assert asked(desk, f"charge the open invoice of {MAIL}") == (
        "charge_invoice",
        {"invoice": "INV-1001"},
    )


def test_what_somebody_paid_last_month_is_listed(desk: RealDesk) -> None:
    tool, arguments = asked(desk, f"what did {MAIL} pay last month?")
    assert tool == "payments_list"
    assert arguments["period"] == "last month"
    assert "PAY-10012" in desk.answer
    assert "PAY-10013" not in desk.answer


def test_a_customer_of_another_team_ends_in_not_found(desk: RealDesk) -> None:
    tool, _arguments = asked(desk, "refund the last payment of other-team@example.com")
    assert tool == "customer_find"
    assert "No customer was found" in desk.answer
    assert "Oscar" not in desk.answer
