"""The kinds of turns that the fault points are tried on, and which points each answers for.

Every name of a point in the product is in exactly one `covers`, or in ELSEWHERE; a test says so.
The short form of the suite kills each kind at the points it answers for, the full form at all
points that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone

from payments.models import Customer, Payment, PaymentMethod
from payments.sandbox.tokens import earlier_ref
from tests.durability.evidence import Facts
from tests.durability.matrix import WORK, Act, key_of

ELSEWHERE: Final[Mapping[str, str]] = {
    # A refusal of a try that another try may have overtaken: the processor must be made to lie.
    "processor.look_again": "tests/payments/test_settling.py",
    # What the processor tells of by itself; whoever did not hear it is told again.
    "processor.observed": "tests/payments/test_observed.py",
    "processor.look_at_refund": "tests/payments/test_observed.py",
    "refund.look": "tests/payments/test_observed.py",
    # A refusal changes nothing that a turn goes on from; its row stands or the person tries again.
    "review.refusal": "tests/audit/test_recorded.py",
    # Work of people on tickets, no part of a turn.
    "ticket.move": "tests/tickets/test_create.py",
    # The processor sends an event again that was not taken; what was kept and not handled is the
    # sweep's, and to handle it twice changes nothing.
    "hook.kept": "tests/processor/test_hook.py",
    "hook.claim": "tests/processor/test_hook.py",
    "hook.handled": "tests/processor/test_hook.py",
    "hook.pruned": "tests/processor/test_hook.py",
    # A comparison that died is made anew; it moves no money of its own.
    "reconcile.begun": "tests/processor/test_reconcile.py",
    "reconcile.ended": "tests/processor/test_reconcile.py",
    "reconcile.dead": "tests/processor/test_reconcile.py",
    # No part of a turn: what is written and not chained is chained by the next tick.
    "audit.chain": "tests/audit/test_chain.py",
    # Mends what no crash leaves behind: a decision and the run's waking are one transaction.
    "run.wake": "tests/runs/test_claims.py",
}

AGENT: Final = "agent"
LEAD: Final = "lead"


def begins(text: str) -> Act:
    """Begin a conversation of the support agent's."""
    return Act("begin", {"owner": AGENT, "text": text, "key": key_of(text)})


def begins_too(text: str, owner: str) -> Act:
    """Begin a conversation of somebody else's."""
    return Act("begin", {"owner": owner, "text": text, "key": key_of(owner + text)})


def says(text: str) -> Act:
    """Say one more thing in the conversation."""
    return Act("say", {"owner": AGENT, "text": text, "key": key_of(text)})


REFUND: Final = "refund 5.00 of PAY-10011 because the box was crushed"
CHARGE: Final = "charge INV-1001"
SEARCH: Final = "how long does a refund take?"
TICKET: Final = "open a ticket about the broken box for PAY-10011"
EXPORT: Final = "export payments of last month as csv"
BATCH: Final = "refund 5.00 of PAY-10011 and open a ticket about the late delivery"
SLOW: Final = "charge INV-1002"
LOST: Final = "charge INV-1003"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of turn. `expected` are facts of its end, checked by hand.

    With `same_words` a death on the way changes not one word of the end; without, the first answer
    may say that something is being checked, or already know it.
    """

    acts: tuple[Act, ...]
    covers: tuple[str, ...] = ()
    stalls: tuple[str, ...] = ()
    expected: Mapping[str, Any]
    same_words: bool = True
    before: Callable[[], None] = lambda: None

    @property
    def decided(self) -> int:
        """Return the place of the act by which people decide; without one, the end."""
        places = [place for place, act in enumerate(self.acts) if act.do in {"approve", "reject"}]
        return min(places, default=len(self.acts))

    @property
    def stalled_in_full(self) -> bool:
        """Tell whether the full form has a place of its own to stall in this kind."""
        return bool(self.covers) or self.decided < len(self.acts)


def many_payments() -> None:
    """Give the customer so many payments of last month that an export shows its progress."""
    customer = Customer.objects.get(email="good-card@example.com")
    method = PaymentMethod.objects.get(customer=customer, is_default=True)
    last_month = timezone.now().replace(day=1) - timedelta(days=10)
    Payment.objects.bulk_create(
        Payment(
            reference=f"PAY-9{number:05}",
            customer=customer,
            method=method,
            amount_minor=100,
            currency="EUR",
            processor_ref=earlier_ref(f"m{number}", 100, "EUR"),
            paid_at=last_month,
        )
        for number in range(520)
    )


NOTHING_PAID: Final[Facts] = {"charged": [], "sent back": [], "intents": []}
ONE_REFUND: Final[Facts] = {
    "charged": [],
    "refunds": [("PAY-10011", 500, "succeeded")],
    "intents": [("refund", 500, "succeeded")],
    "reviews": [("refund", 500, "approved", True)],
    "runs": ["done"],
}
ONE_CHARGE: Final[Facts] = {
    "charged": [2500],
    "payments": [("INV-1001", 2500, "succeeded")],
    "paid": ["INV-1001"],
    "intents": [("charge", 2500, "succeeded")],
    "sent back": [],
}

KINDS: Final[Mapping[str, Kind]] = {
    "charge": Kind(
        acts=(begins(CHARGE), WORK),
        covers=(
            "message.send",
            "conversation.begin",
            "conversation.bound",
            "charge.intent",
            "intent.try",
        ),
        stalls=("message.send:before", "processor.send:after"),
        expected={**ONE_CHARGE, "runs": ["done"]},
    ),
    "charge-confirmed": Kind(
        acts=(
            begins("charge the open invoice of good-card@example.com"),
            WORK,
            Act("approve", {"by": AGENT}),
            WORK,
        ),
        covers=(),
        expected={
            **ONE_CHARGE,
            "runs": ["done"],
            "reviews": [("charge", 2500, "approved", True)],
        },
    ),
    "refund": Kind(
        acts=(begins(REFUND), WORK, Act("approve", {"by": LEAD}), WORK),
        covers=(
            "batch.gated",
            "run.wait",
            "review.decide",
            "refund.intent",
            "processor.send",
            "intent.reply",
        ),
        stalls=("review.decide:before", "intent.reply:before"),
        expected=ONE_REFUND,
    ),
    "refund-rejected": Kind(
        acts=(
            begins(REFUND),
            WORK,
            Act("reject", {"by": LEAD, "sentence": "It arrived in order."}),
            WORK,
        ),
        covers=(),
        expected={
            **NOTHING_PAID,
            "reviews": [("refund", 500, "rejected", False)],
            "runs": ["done"],
        },
    ),
    "ticket": Kind(
        acts=(begins(TICKET), WORK),
        covers=("ticket.open", "call.began", "call.ended", "run.claim", "run.end"),
        expected={**NOTHING_PAID, "tickets": [("The broken box for PAY-10011", "PAY-10011")]},
    ),
    "export": Kind(
        acts=(begins(EXPORT), WORK, Act("exports_end")),
        covers=(
            "export.request",
            "export.send",
            "export.claim",
            "export.clear",
            "export.progress",
            "export.move",
            "export.delete",
            "storage.save",
            "storage.check",
        ),
        stalls=("storage.save:before",),
        expected={**NOTHING_PAID, "exports": [("expired", True, False, "")]},
        before=many_payments,
    ),
    "search": Kind(
        acts=(begins(SEARCH), Act("stop_mode", {"owner": AGENT, "mode": "hard"}), WORK),
        covers=(
            "conversation.stop_mode",
            "task.send",
            "model.call",
            "model.ended",
            "checkpoint",
        ),
        expected={**NOTHING_PAID, "runs": ["done"]},
    ),
    "batch": Kind(
        acts=(begins(BATCH), WORK, Act("approve", {"by": LEAD}), WORK),
        covers=(),
        expected={**ONE_REFUND, "tickets": [("The late delivery", "")]},
    ),
    "slow": Kind(
        acts=(begins(SLOW), WORK, begins_too(SLOW, LEAD), WORK, Act("settle"), WORK),
        covers=("intent.told", "intent.claim", "intent.notices", "notice.post", "call.settled"),
        stalls=("call.settled:before",),
        expected={
            "charged": [3000],
            "payments": [("INV-1002", 3000, "succeeded")],
            "paid": ["INV-1002"],
            "intents": [("charge", 3000, "succeeded")],
        },
        same_words=False,
    ),
    "lost": Kind(
        acts=(begins(LOST), WORK, Act("days_pass"), Act("settle"), WORK),
        covers=("processor.look_first",),
        expected={
            "charged": [3500],
            "payments": [("INV-1003", 3500, "succeeded")],
            "paid": ["INV-1003"],
            "intents": [("charge", 3500, "succeeded")],
        },
        same_words=False,
    ),
    "retried": Kind(
        acts=(
            begins(CHARGE),
            Act("cancel", {"owner": AGENT}),
            Act("retry", {"owner": AGENT}),
            WORK,
        ),
        covers=("run.cancel", "run.retry"),
        expected={**ONE_CHARGE, "runs": ["cancelled", "done"]},
    ),
    "withdrawn": Kind(
        acts=(begins(REFUND), WORK, Act("cancel", {"owner": AGENT}), WORK),
        covers=(),
        expected={**NOTHING_PAID, "reviews": [("refund", 500, "withdrawn", False)]},
    ),
    "expired": Kind(
        acts=(begins(REFUND), WORK, Act("expire"), WORK),
        covers=("review.expire",),
        expected={**NOTHING_PAID, "reviews": [("refund", 500, "expired", False)]},
    ),
    "in-line": Kind(
        acts=(
            begins(SEARCH),
            says(TICKET),
            Act("edit", {"owner": AGENT, "text": TICKET.replace("box", "lid")}),
            says(CHARGE),
            Act("remove", {"owner": AGENT, "text": CHARGE}),
            Act("lose"),
            Act("sweep"),
            WORK,
        ),
        covers=("message.edit", "message.remove", "run.next", "run.enqueue_again"),
        expected={**NOTHING_PAID, "tickets": [("The broken lid for PAY-10011", "PAY-10011")]},
    ),
    "taken-back": Kind(
        acts=(
            begins(TICKET),
            Act("die", {"point": "model.call:after"}),
            Act("sweep"),
            WORK,
        ),
        covers=("run.take_back", "model.began"),
        stalls=("run.take_back:before",),
        expected={**NOTHING_PAID, "tickets": [("The broken box for PAY-10011", "PAY-10011")]},
    ),
    "export-taken-back": Kind(
        acts=(
            begins(EXPORT),
            Act("take"),
            Act("die", {"point": "export.claim:after"}),
            Act("sweep"),
            Act("lose"),
            Act("sweep"),
            WORK,
        ),
        covers=("export.requeue", "export.resend"),
        expected={**NOTHING_PAID, "exports": [("ready", True, True, "")]},
    ),
    "export-handed-back": Kind(
        acts=(begins(EXPORT), Act("take"), Act("leave"), WORK),
        covers=("export.hand_back",),
        expected={**NOTHING_PAID, "exports": [("ready", True, True, "")]},
    ),
    "operated": Kind(
        acts=(
            begins(REFUND),
            WORK,
            Act("approve", {"by": LEAD}),
            Act("pause", {"by": "admin"}),
            Act("push", {"by": "admin"}),
            WORK,
        ),
        covers=("run.push", "refunds.switch"),
        expected={**NOTHING_PAID, "reviews": [("refund", 500, "approved", False)]},
    ),
    "handed-back": Kind(
        acts=(begins(TICKET), Act("leave"), WORK),
        covers=("run.hand_back",),
        expected={**NOTHING_PAID, "tickets": [("The broken box for PAY-10011", "PAY-10011")]},
    ),
}
