"""What may happen to a charge or a refund: at the processor, in the ledger, in a reviewer's hands.

Each arranges it as it would come about; the tool and the ledger are the product's own.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from agent_core.harness.cases import AskedOf
from payments.models import Invoice, Payment, PaymentMethod
from payments.policies import REQUEST_REFUND
from payments.sandbox.tokens import earlier_ref
from payments.states import InvoiceState, PaymentState
from payments.tools import charge_invoice, refund_request
from reviews.models import Review
from reviews.services import review_reject, review_withdraw, reviews_expire
from tests.conformance.samples import approves
from tests.conformance.scenes import Scene

Before = Callable[[Scene], None]
Decided = Callable[[Scene, Review], None]

# Nothing listens there.
DOWN = "http://127.0.0.1:9"
PAYMENT = "PAY-10011"
INVOICE = "INV-1001"


# At the processor


def processor_down(scene: Scene) -> None:
    """Have nobody answer on the processor's address."""
    scene.settings.SANDBOX_URL = DOWN


def processor_fault(kind: str) -> Before:
    """Return what makes the processor's next answer fail in this way."""

    def before(scene: Scene) -> None:
        scene.processor.fault(kind)

    return before


def bank_silent(scene: Scene) -> None:
    """Have the processor say that the bank could not answer, which the sandbox never says."""

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            error = {
                "type": "card_error",
                "code": "card_declined",
                "decline_code": "try_again_later",
            }
            body = json.dumps({"error": error}).encode()
            self.send_response(402)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = scene.closing.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Answering))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    scene.closing.callback(thread.join)
    scene.closing.callback(server.shutdown)
    scene.settings.SANDBOX_URL = f"http://127.0.0.1:{server.server_port}"


def card_unknown(scene: Scene) -> None:
    """Let the processor know nothing of the saved card."""
    saved = PaymentMethod.objects.filter(customer__email="good-card@example.com")
    saved.update(processor_ref="card_long_gone")


def payment_unknown(scene: Scene) -> None:
    """Let the processor know nothing of the payment."""
    _payment().update(processor_ref="pi_unheard_of")


def payment_known_as(**facts: Any) -> Before:
    """Return what lets the processor know more of the payment than our books do."""

    def before(scene: Scene) -> None:
        _payment().update(processor_ref=earlier_ref("10011again", 4000, "EUR", **facts))

    return before


# In the ledger


def charged_before(scene: Scene) -> None:
    """Let an earlier call have charged the invoice."""
    charge_invoice(replace(scene.context(), call_id=uuid4()), invoice=INVOICE)


def invoice_void(scene: Scene) -> None:
    """Let the invoice be void."""
    _invoice().update(state=InvoiceState.VOID)


def invoice_big(scene: Scene) -> None:
    """Let the invoice be above what may be charged without a second person."""
    _invoice().update(amount_minor=300_000)


def invoice_bigger(scene: Scene, review: Review) -> None:
    """Let the invoice be about more than what was approved."""
    _invoice().update(amount_minor=300_100)


def payment_failed(scene: Scene, review: Review | None = None) -> None:
    """Let the payment turn out not to have succeeded."""
    _payment().update(state=PaymentState.FAILED)


def payment_disputed(scene: Scene, review: Review) -> None:
    """Let the customer dispute the payment at the bank."""
    _payment().update(disputed=True)


def refund_being_checked(scene: Scene) -> None:
    """Let an earlier refund of the payment be without an answer from the processor."""
    arguments = {"payment": PAYMENT, "amount": "1.00"}
    asked = AskedOf(str(uuid4()), "refund_request", arguments)
    approval = scene.decide(asked, approves)["review"]
    context = replace(scene.context(), call_id=UUID(asked.call_id), review_id=UUID(approval))
    processor_down(scene)
    refund_request(context, **arguments)
    scene.settings.SANDBOX_URL = scene.processor.url


def approval_used(scene: Scene, review: Review) -> None:
    """Let another call have used the approval."""
    context = replace(scene.context(), call_id=uuid4(), review_id=review.pk)
    refund_request(context, payment=PAYMENT, amount="5.00")


def refund_right_taken(scene: Scene, review: Review) -> None:
    """Let whoever asked lose the right meanwhile."""
    scene.take_right(REQUEST_REFUND)


def _payment() -> Any:
    return Payment.objects.filter(reference=PAYMENT)


def _invoice() -> Any:
    return Invoice.objects.filter(reference=INVOICE)


# In the reviewer's hands


def approves_then(event: Decided) -> Decided:
    """Return an approval after which something happens before the run goes on."""

    def decided(scene: Scene, review: Review) -> None:
        approves(scene, review)
        event(scene, review)

    return decided


def lowers(amount: str) -> Decided:
    """Return an approval of less than was asked for."""

    def decided(scene: Scene, review: Review) -> None:
        scene.approve(review, {"amount": amount})

    return decided


def rejects(scene: Scene, review: Review) -> None:
    """Have the lead refuse, with a sentence for the chat."""
    review_reject(
        review_id=review.pk,
        actor=scene.lead,
        channel="desk",
        sentence="Please ask the customer for a photo first.",
        note="Looks like PAY-10011 again.",
    )


def withdraws(scene: Scene, review: Review) -> None:
    """Have whoever asked take it back."""
    review_withdraw(review_id=review.pk, actor=scene.user, channel="chat")


def lets_expire(scene: Scene, review: Review) -> None:
    """Let the time be over before anybody has decided."""
    Review.objects.filter(pk=review.pk).update(expires_at=timezone.now() - dt.timedelta(minutes=1))
    reviews_expire()
