"""The answer on a stop: of several tries the last one speaks, and a receipt is never lost."""

from typing import Any

from agent_core.answer import answer_compose
from agent_core.contract import completed, policy_block, transient


def call(content: str, artifact: Any, identity: str = "one") -> dict[str, Any]:
    """Return one finished call with an effect."""
    return {
        "content": content,
        "artifact": artifact,
        "effect": True,
        "label": "Refunded the payment",
        "identity": identity,
    }


PAID = completed("refund.completed", stop=True, data={"summary": "12.00 EUR"})


def test_of_several_tries_the_last_one_speaks() -> None:
    tries = [call("Being checked.", transient("refund.being_checked")), call("Receipt.", PAID)]
    answer = answer_compose(tries, rule="completed", evidence={})
    assert (answer.text, answer.done, answer.not_done) == ("Receipt.", ("12.00 EUR",), ())


def test_a_receipt_is_told_beside_the_refusal_of_its_repeat() -> None:
    calls = [call("Receipt.", PAID), call("Already decided.", policy_block("repeat.changed"))]
    answer = answer_compose(calls, rule="policy_block", evidence={})
    assert answer.text == (
        "1 of 2 done: 12.00 EUR; 1 not: refunded the payment.\n\nAlready decided.\n\nReceipt."
    )
    assert (answer.done, answer.not_done) == (("12.00 EUR",), ("Refunded the payment",))


def test_a_receipt_that_is_given_again_stands_once() -> None:
    calls = [call("Receipt.", PAID), call("Receipt.", {**PAID, "already_applied": True})]
    answer = answer_compose(calls, rule="completed", evidence={})
    assert (answer.text, answer.done) == ("Receipt.", ("12.00 EUR",))
