"""Several calls of the product's tools in one request: what only a batch or a repeat can bring."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_core.chat_models.scripted import ScriptedStep, calls
from reviews.models import Review
from tests.conformance.outcomes import GOLDEN
from tests.conformance.samples import approves
from tests.conformance.scenes import Scene
from tests.payments.tool_events import lowers, rejects


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What the model says, message by message, and the code of each call in turn."""

    name: str
    words: tuple[str, ...]
    steps: tuple[ScriptedStep, ...]
    codes: tuple[str, ...]
    decided: Callable[[Scene, Review], None] = approves

    @property
    def golden(self) -> Path:
        """Return the file that says how it reads."""
        return GOLDEN / "batches" / f"{self.name}.txt"


def _refund(amount: str, payment: str = "PAY-10011", **more: str) -> tuple[str, Mapping[str, str]]:
    return "refund_request", {"payment": payment, "amount": amount, **more}


def _big_ones_rejected(scene: Scene, review: Review) -> None:
    (rejects if (review.amount_minor or 0) > 1000 else approves)(scene, review)


_FIND: Final = ("customer_find", {"key": "good-card@example.com"})

BATCHES: Final = (
    Batch(
        name="an-effect-beside-a-refused-one",
        words=("charge INV-1005 and refund 5.00 of PAY-10051 for disputed@example.com",),
        steps=(calls(("charge_invoice", {"invoice": "INV-1005"}), _refund("5.00", "PAY-10051")),),
        codes=("batch.held", "payment.disputed"),
    ),
    Batch(
        name="one-refund-approved-one-rejected",
        words=("refund 5.00 of PAY-10011 and 20.00 of PAY-10012",),
        steps=(calls(_refund("5.00"), _refund("20.00", "PAY-10012")),),
        codes=("refund.completed", "review.rejected"),
        decided=_big_ones_rejected,
    ),
    Batch(
        name="a-refund-beside-what-cannot-be-paid",
        words=("refund 5.00 of PAY-10041 and charge INV-1004 of declined@example.com",),
        steps=(calls(_refund("5.00", "PAY-10041"), ("charge_invoice", {"invoice": "INV-1004"})),),
        codes=("refund.completed", "charge.declined"),
    ),
    Batch(
        name="a-changed-refund-asked-again",
        words=("refund 5.00 of PAY-10011 and find good-card@example.com",),
        steps=(calls(_refund("5.00", remaining="find the customer")), calls(_refund("5.00"))),
        codes=("refund.completed", "repeat.changed"),
        decided=lowers("3.00"),
    ),
    Batch(
        name="a-charge-said-twice",
        words=("charge INV-1001 of good-card@example.com",),
        steps=(
            calls(("charge_invoice", {"invoice": "INV-1001"}), _FIND),
            calls(("charge_invoice", {"invoice": "inv-1001"})),
        ),
        codes=("charge.completed", "customer.found", "charge.completed"),
    ),
    Batch(
        name="a-near-name-of-a-tool",
        words=("refund 5.00 of PAY-10011",),
        steps=(calls(("refund_customer", {"payment": "PAY-10011"})),),
        codes=("call.invalid",),
    ),
)

ELSEWHERE: Final[Mapping[str, str]] = {
    "charge.amount_differs": (
        "tests/payments/test_charges.py::test_anything_but_the_open_amount_is_refused"
    ),
    "refund.paused": (
        "tests/payments/test_pause.py::test_the_ledger_refuses_and_leaves_the_approval_for_later"
    ),
    "amount.refused": "tests/payments/test_refunds.py::test_another_currency_is_never_sent",
    "charge.card_expired": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.card_details": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.funds_short": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.card_limit": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.card_unsuited": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.amount_unfit": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.customer_needed": (
        "tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"
    ),
    "charge.duplicate": ("tests/payments/test_classes_told.py::test_what_can_be_fixed_is_said"),
    "charge.unavailable": (
        "tests/payments/test_classes_told.py"
        "::test_a_refused_access_ends_a_first_try_and_alerts_the_operators"
    ),
    "refund.unavailable": (
        "tests/payments/test_classes_told.py::test_a_refused_access_ends_a_first_refund_in_words"
    ),
    "refund.amount_unfit": (
        "tests/conformance/test_answers.py::test_an_error_of_a_refund_has_its_class"
    ),
    "refund.accepted": (
        "tests/payments/test_observed.py"
        "::test_a_refund_walks_from_accepted_to_settled_and_is_sent_once"
    ),
    "refund.undelivered": (
        "tests/payments/test_observed.py::test_a_refund_that_fails_days_later_reopens_its_case_once"
    ),
    "refund.expired": (
        "tests/payments/test_left.py::test_an_old_payment_is_refused_and_its_approval_kept"
    ),
    "processor.resting": (
        "tests/concurrency/test_breaker.py"
        "::test_while_it_rests_nothing_is_written_and_what_was_written_is_settled"
    ),
}
"""Codes that no call of a tool brings about by itself, with the test that does: refusals of the
ledger to a caller that asks for another amount or currency than the record has, which our tools
read from the record; what an operator's switch or a failing processor brings about; and what banks
answer beside a plain decline."""
