"""Two sets of books of yesterday that agree, for a test to spoil one of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
from django.utils import timezone

from payments.models import Dispute, Intent, Payment, Refund
from payments.processor.models import Reconciliation
from payments.processor.services_reconcile import days_back, reconcile
from payments.services import charge_make, refund_make
from tests.payments.cast import Desk
from tests.payments.processor import ACCESS, Processor


class Books:
    """A charge of 25.00 and, of the desk's 100.00 EUR, a refund of 60.00; made yesterday."""

    def __init__(self, desk: Desk, processor: Processor) -> None:
        self.desk = desk
        self.processor = processor
        # An earlier one is entered there when it is first asked for.
        self.there("payment_intents/" + desk.payment.processor_ref)
        invoice = desk.owed()
        charge_make(
            context=desk.context(),
            invoice_id=invoice.pk,
            amount_minor=2500,
            currency="EUR",
            method_id=desk.method.pk,
        )
        self.refund = self.given_back(6000)
        self.payment = Payment.objects.get(invoice=invoice)
        self.age()

    def given_back(self, amount: int, fails: bool = False) -> Refund:
        """Refund so much of the desk's payment."""
        review = self.desk.approved(self.desk.payment, amount)
        refund_make(
            context=self.desk.context(),
            payment_id=self.desk.payment.pk,
            amount_minor=amount,
            currency="EUR",
            review_id=review,
        )
        return Refund.objects.get(review_id=review)

    def age(self) -> None:
        """Let everything on both sides have happened yesterday at noon."""
        noon = self.noon
        Payment.objects.update(paid_at=noon)
        for model in (Intent, Refund, Dispute):
            model._default_manager.update(created_at=noon)
        kept = self.processor.books()
        for table in ("payment_intents", "refunds", "disputes"):
            for row in kept[table]:
                self.processor.alter(row["id"], created=int(noon.timestamp()))

    @property
    def noon(self) -> Any:
        """Return yesterday's noon."""
        return days_back(timezone.now())[1] - timedelta(hours=12)

    def there(self, path: str, **form: str) -> dict[str, Any]:
        """Ask the processor past us, or do something there."""
        url = f"{self.processor.url}/v1/{path}"
        method = "POST" if form else "GET"
        answer = httpx.request(
            method, url, data=form or None, headers=ACCESS, trust_env=False, timeout=30
        )
        read: dict[str, Any] = answer.json()
        return read

    def outside(self, amount: int, payment: str = "") -> str:
        """Let somebody give back there what nobody here asked for; return its name."""
        made = self.there(
            "refunds",
            payment_intent=payment or self.desk.payment.processor_ref,
            amount=str(amount),
        )
        return str(made["id"])

    def compare(self, *, apply: bool = False) -> Reconciliation:
        """Compare yesterday and the day before."""
        since, until = days_back(timezone.now())
        return reconcile(since=since, until=until, apply=apply)


def found(row: Reconciliation) -> list[tuple[str, str, bool]]:
    """Return the findings: what, of which kind, whether put right."""
    return [(one["difference"], one["kind"], one["repaired"]) for one in row.findings]


def named(row: Reconciliation) -> set[UUID | str]:
    """Return what people call the things that were found."""
    return {one["reference"] for one in row.findings}
