"""One good call of the tool for tickets, on the demo's data, and its other outcomes."""

from dataclasses import replace
from typing import Final
from uuid import uuid4

from tests.conformance.breaking import rows_refused
from tests.conformance.samples import Forced, ToolSample
from tests.conformance.scenes import Scene
from tickets.tools import ticket_create

_GOOD: Final = {"subject": "The receipt is missing", "payment": "PAY-10011"}


def _opened_before(scene: Scene) -> None:
    ticket_create(replace(scene.context(), call_id=uuid4()), **_GOOD)


SAMPLES: Final = {
    "ticket_create": ToolSample(
        words=("open a ticket: the receipt of PAY-10011 is missing, good-card@example.com",),
        arguments=_GOOD,
        same=(
            {"subject": "the  receipt is MISSING.", "payment": "pay-10011 "},
            {"subject": "The receipt is missing", "payment": "PAY-10011", "body": "Since May."},
        ),
        other=(
            {"subject": "The receipt is missing"},
            {"subject": "The receipt is wrong", "payment": "PAY-10011"},
        ),
        outcomes={
            "completed": {
                "as-asked": Forced(code="ticket.created"),
                "opened-before": Forced(code="ticket.created", before=_opened_before),
            },
            "transient": {
                "no-subject": Forced(code="ticket.invalid", arguments={"subject": " \n"}),
                "unknown-payment": Forced(
                    code="payment.not_found", arguments={"payment": "PAY-99999"}
                ),
            },
            "fatal": {
                "database-refuses": Forced(
                    code="tool.failed", before=rows_refused("tickets_ticket")
                )
            },
        },
    ),
}
