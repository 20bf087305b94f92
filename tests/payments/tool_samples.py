"""One good call of each tool of the ledger, on the demo's data."""

from typing import Final

from tests.conformance.samples import ToolSample

_REFUND: Final = "refund 5.00 of PAY-10011 for good-card@example.com"

SAMPLES: Final = {
    "customer_find": ToolSample(
        words=("find good-card@example.com",), arguments={"key": "good-card@example.com"}
    ),
    "payments_list": ToolSample(
        words=("payments of good-card@example.com last month",),
        arguments={"customer": "good-card@example.com", "period": "last month"},
    ),
    "charge_invoice": ToolSample(
        words=("charge INV-1001 of good-card@example.com",),
        arguments={"invoice": "INV-1001"},
        same=({"invoice": " inv-1001 "}, {"invoice": "INV-1001", "method": "4242"}),
        other=({"invoice": "INV-1002"},),
    ),
    "refund_request": ToolSample(
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
    ),
}
