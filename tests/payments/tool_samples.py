"""One good call of each tool of the ledger, on the demo's data, and its other outcomes.

What a person and the processor can do to a charge or a refund is in `tool_events.py`.
"""

from typing import Final

from payments.sandbox.tokens import DISPUTED
from tests.conformance.breaking import rows_refused, table_gone
from tests.conformance.samples import Forced, ToolSample
from tests.payments import tool_events as event

_REFUND: Final = "refund 5.00 of PAY-10011 for good-card@example.com"

_OF_A_CUSTOMER: Final = {
    "nobody-fits": Forced(code="customer.not_found", arguments={"key": "nobody@example.com"}),
    "another-teams": Forced(code="customer.not_found", arguments={"key": "other-team@example.com"}),
}

_CHARGE: Final = ToolSample(
    words=("charge INV-1001 of good-card@example.com",),
    arguments={"invoice": "INV-1001"},
    same=({"invoice": " inv-1001 "}, {"invoice": "INV-1001", "method": "4242"}),
    other=({"invoice": "INV-1002"},),
    outcomes={
        "completed": {
            "as-asked": Forced(code="charge.completed"),
            "charged-before": Forced(code="charge.completed", before=event.charged_before),
            "confirmed": Forced(
                code="charge.completed", words=("charge what good-card@example.com owes",)
            ),
        },
        "transient": {
            "unknown-invoice": Forced(code="payment.not_found", arguments={"invoice": "INV-9999"}),
            "another-teams": Forced(code="payment.not_found", arguments={"invoice": "INV-1007"}),
            "no-such-way-to-pay": Forced(
                code="charge.method_unclear", arguments={"method": "9999"}
            ),
            "processor-down": Forced(code="charge.being_checked", before=event.processor_down),
            "processor-answers-garbage": Forced(
                code="charge.being_checked", before=event.processor_fault("garbage_after")
            ),
            "bank-cannot-answer": Forced(code="charge.declined_for_now", before=event.bank_silent),
            "processor-times-out-after-its-commit": Forced(
                code="charge.being_checked",
                words=("charge INV-1002 of slow-committed@example.com",),
                arguments={"invoice": "INV-1002"},
            ),
            "processor-times-out-before-its-commit": Forced(
                code="charge.being_checked",
                words=("charge INV-1003 of slow-lost@example.com",),
                arguments={"invoice": "INV-1003"},
            ),
        },
        "fatal": {
            "declined": Forced(
                code="charge.declined",
                words=("charge INV-1004 of declined@example.com",),
                arguments={"invoice": "INV-1004"},
            ),
            "processor-refuses": Forced(code="charge.refused", before=event.card_unknown),
            "invoice-void": Forced(code="charge.not_open", before=event.invoice_void),
            "database-refuses": Forced(code="tool.failed", before=rows_refused("payments_intent")),
        },
        "policy_block": {
            "above-the-limit-rejected": Forced(
                code="review.rejected", before=event.invoice_big, decided=event.rejects
            ),
            "not-confirmed": Forced(
                code="review.withdrawn",
                words=("charge what good-card@example.com owes",),
                decided=event.withdraws,
            ),
            "amount-changed-after-approval": Forced(
                code="review.missing",
                before=event.invoice_big,
                decided=event.approves_then(event.invoice_bigger),
            ),
        },
    },
)

_REFUNDED: Final = ToolSample(
    words=(_REFUND,),
    arguments={"payment": "PAY-10011", "amount": "5.00", "reason": "Arrived late"},
    same=(
        {"payment": " pay-10011", "amount": "€5"},
        {"payment": "10011", "amount": "5,00 eur", "reason": "late"},
    ),
    other=(
        {"payment": "PAY-10011", "amount": "6.00"},
        {"payment": "PAY-10011"},
        {"payment": "PAY-10012", "amount": "5.00"},
    ),
    outcomes={
        "completed": {
            "approved": Forced(code="refund.completed"),
            "lowered": Forced(code="refund.completed", decided=event.lowers("3.00")),
        },
        "transient": {
            "unknown-payment": Forced(code="payment.not_found", arguments={"payment": "PAY-99999"}),
            "another-teams": Forced(code="payment.not_found", arguments={"payment": "PAY-10071"}),
            "no-amount": Forced(code="refund.amount_unclear", arguments={"amount": "a lot"}),
            "processor-down": Forced(code="refund.being_checked", before=event.processor_down),
            "processor-answers-garbage": Forced(
                code="refund.being_checked", before=event.processor_fault("garbage_after")
            ),
            "processor-times-out-after-its-commit": Forced(
                code="refund.being_checked",
                words=("refund 5.00 of PAY-10021 for slow-committed@example.com",),
                arguments={"payment": "PAY-10021"},
            ),
            "processor-times-out-before-its-commit": Forced(
                code="refund.being_checked",
                words=("refund 5.00 of PAY-10031 for slow-lost@example.com",),
                arguments={"payment": "PAY-10031"},
            ),
            "another-one-being-checked": Forced(
                code="intent.busy", before=event.refund_being_checked
            ),
        },
        "fatal": {
            "refunded-at-the-processor": Forced(
                code="refund.already_refunded", before=event.payment_known_as(refunded_minor=4000)
            ),
            "less-left-at-the-processor": Forced(
                code="refund.above_left", before=event.payment_known_as(refunded_minor=3800)
            ),
            "processor-refuses": Forced(code="refund.refused", before=event.payment_unknown),
            "payment-failed": Forced(code="payment.not_refundable", before=event.payment_failed),
            "payment-failed-after-approval": Forced(
                code="payment.not_refundable", decided=event.approves_then(event.payment_failed)
            ),
            "database-refuses": Forced(code="tool.failed", before=rows_refused("payments_intent")),
        },
        "policy_block": {
            "disputed": Forced(
                code="payment.disputed",
                words=("refund 5.00 of PAY-10051 for disputed@example.com",),
                arguments={"payment": "PAY-10051"},
            ),
            "disputed-at-the-processor": Forced(
                code="payment.disputed", before=event.payment_known_as(fault=DISPUTED)
            ),
            "disputed-after-approval": Forced(
                code="payment.disputed", decided=event.approves_then(event.payment_disputed)
            ),
            "more-than-is-left": Forced(code="refund.above_left", arguments={"amount": "400.00"}),
            "above-the-daily-limit": Forced(
                code="refund.daily_limit",
                words=("refund PAY-10013 for good-card@example.com",),
                arguments={"payment": "PAY-10013", "amount": ""},
            ),
            "rejected": Forced(code="review.rejected", decided=event.rejects),
            "withdrawn": Forced(code="review.withdrawn", decided=event.withdraws),
            "expired": Forced(code="review.expired", decided=event.lets_expire),
            "approval-used-elsewhere": Forced(
                code="review.missing", decided=event.approves_then(event.approval_used)
            ),
            "right-taken-after-approval": Forced(
                code="right.missing", decided=event.approves_then(event.refund_right_taken)
            ),
        },
    },
)

SAMPLES: Final = {
    "customer_find": ToolSample(
        words=("find good-card@example.com",),
        arguments={"key": "good-card@example.com"},
        outcomes={
            "completed": {
                "as-asked": Forced(code="customer.found"),
                "several-fit": Forced(code="customer.several", arguments={"key": "er"}, words=()),
            },
            "transient": _OF_A_CUSTOMER,
            "fatal": {
                "database-fails": Forced(code="tool.failed", before=table_gone("payments_invoice"))
            },
            "policy_block": {
                "another-customer": Forced(
                    code="customer.other", arguments={"key": "slow-lost@example.com"}
                )
            },
        },
    ),
    "payments_list": ToolSample(
        words=("payments of good-card@example.com last month",),
        arguments={"customer": "good-card@example.com", "period": "last month"},
        outcomes={
            "completed": {"as-asked": Forced(code="payments.listed")},
            "transient": {
                "nobody-fits": Forced(
                    code="customer.not_found", arguments={"customer": "nobody@example.com"}
                ),
                "nobody-named": Forced(
                    code="customer.unnamed", words=(), arguments={"customer": ""}
                ),
                "period-unclear": Forced(
                    code="period.unclear", arguments={"period": "a month " * 30}
                ),
            },
            "fatal": {
                "database-fails": Forced(code="tool.failed", before=table_gone("payments_refund"))
            },
            "policy_block": {
                "another-customer": Forced(
                    code="customer.other", arguments={"customer": "slow-lost@example.com"}
                )
            },
        },
    ),
    "charge_invoice": _CHARGE,
    "refund_request": _REFUNDED,
}
