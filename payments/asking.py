"""Turn a call that a rule sends to a person into what that person is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from agent_core.contract import RunContext
from agent_core.policy import Proposal, ReviewProposal, Verdict, verdict_of
from payments.facts import Facts
from payments.models import Invoice, Payment
from payments.policies import POLICIES
from payments.proposals import (
    ChargeAsk,
    RefundAsk,
    charge_proposal,
    one_line,
    origin_rows,
    reason_text,
    refund_proposal,
)
from payments.risks import origin_flags
from payments.selectors import methods_fitting


def refund_propose(
    context: RunContext, arguments: Mapping[str, Any], facts: Facts
) -> ReviewProposal:
    """Return what a second person is asked about this refund."""
    payment: Payment = facts["record"]
    return refund_proposal(
        RefundAsk(
            payment=payment,
            amount_minor=facts["wanted_minor"],
            refunded_minor=facts["refunded_minor"],
            waiting_minor=facts["waiting_minor"] + facts["beside_minor"],
            left_minor=facts["left_minor"],
            reason=reason_text(arguments.get("reason")),
            why=_ruled("refund_request", context, arguments, facts).text,
            asked_by=_asked_by(context),
            call_id=context.call_id,
            origins=origin_rows(arguments, context, payment.currency),
            origin_flags=origin_flags(arguments, context, payment.currency),
        )
    )


def charge_propose(
    context: RunContext, arguments: Mapping[str, Any], facts: Facts
) -> ReviewProposal:
    """Return what is asked about this charge, and whether the requester may confirm it."""
    invoice: Invoice = facts["record"]
    fitting = methods_fitting(invoice.customer, str(arguments.get("method", "")))
    verdict = _ruled("charge_invoice", context, arguments, facts)
    return charge_proposal(
        ChargeAsk(
            invoice=invoice,
            method=fitting[0] if len(fitting) == 1 else None,
            why=verdict.text,
            asked_by=_asked_by(context),
            requester_confirms=verdict.rule == "charge.unnamed",
            origins=origin_rows(arguments, context, invoice.currency),
            origin_flags=origin_flags(arguments, context, invoice.currency),
        )
    )


def _ruled(tool: str, context: RunContext, arguments: Mapping[str, Any], facts: Facts) -> Verdict:
    proposal = Proposal(
        tool=tool, arguments=arguments, rights=context.rights, customer_id=context.customer_id
    )
    return verdict_of(POLICIES[tool], proposal, facts)


def _asked_by(context: RunContext) -> str:
    return _("{name}, through the assistant").format(name=one_line(context.requester_name))
