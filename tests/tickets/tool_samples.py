"""One good call of the tool for tickets, on the demo's data."""

from typing import Final

from tests.conformance.samples import ToolSample

SAMPLES: Final = {
    "ticket_create": ToolSample(
        words=("open a ticket: the receipt of PAY-10011 is missing, good-card@example.com",),
        arguments={"subject": "The receipt is missing", "payment": "PAY-10011"},
        same=(
            {"subject": "the  receipt is MISSING.", "payment": "pay-10011 "},
            {"subject": "The receipt is missing", "payment": "PAY-10011", "body": "Since May."},
        ),
        other=(
            {"subject": "The receipt is missing"},
            {"subject": "The receipt is wrong", "payment": "PAY-10011"},
        ),
    ),
}
