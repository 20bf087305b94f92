"""What a reviewer is warned of, as flags: a stable name and one sentence with its figures each.

No flag weighs more than another and none adds up to a score; a person does that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.db.models import Count, Min, Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent_core.contract import RunContext
from payments.models import Customer, Payment
from payments.money import Money, MoneyInvalid, money_format, money_parse
from payments.states import PaymentState
from payments.words import amount_in_words, key_in_words, plain
from reviews.states import Risk

Flag = Mapping[str, str]

NEW_DAYS: Final = 30
UNUSUAL_TIMES: Final = 3
UNUSUAL_PAYMENTS: Final = 3
"""So many other payments must there be before a customer has a usual amount."""
MANY_REFUNDS: Final = 2
MOSTLY_TENTHS: Final = 9

_OF_ORIGIN: Final = (Risk.VALUE_UNNAMED, Risk.VALUE_READ)
# A reason may be the assistant's wording; what moves money may not.
_MOVING: Final = ("payment", "invoice", "amount", "method")


def customer_flags(
    customer: Customer, asked: Money, *, disputes: int, besides: Payment | None = None
) -> list[Flag]:
    """Return what is unusual about the customer, or about so much of theirs; one query."""
    paid = Payment.objects.filter(customer=customer, state=PaymentState.SUCCEEDED)
    like = Q(currency=asked.currency)
    if besides is not None:
        like &= ~Q(pk=besides.pk)
    found = paid.aggregate(
        first=Min("paid_at"), count=Count("pk", filter=like), sum=Sum("amount_minor", filter=like)
    )
    flags = [*_new(found["first"]), *_unusual(asked, found["count"], found["sum"] or 0)]
    if disputes:
        text = ngettext(
            "{count} payment of this customer is disputed at the bank.",
            "{count} payments of this customer are disputed at the bank.",
            disputes,
        ).format(count=disputes)
        flags.append(_flag(Risk.PAYMENT_DISPUTED, text))
    return flags


def refund_flags(payment: Payment, asked: Money, refunded_minor: int, lately: int) -> list[Flag]:
    """Return what is unusual about giving so much back of this payment now."""
    flags = []
    if lately >= MANY_REFUNDS:
        text = _("{count} refunds to this customer in the last 30 days.").format(count=lately)
        flags.append(_flag(Risk.REFUNDS_MANY, text))
    after = refunded_minor + asked.amount_minor
    # A first refund in full is nothing unusual; the last piece of one in pieces is.
    if refunded_minor and after * 10 >= payment.amount_minor * MOSTLY_TENTHS:
        text = _("With this, {after} of {paid} of the payment are refunded.").format(
            after=money_format(Money(after, payment.currency)),
            paid=money_format(Money(payment.amount_minor, payment.currency)),
        )
        flags.append(_flag(Risk.REFUNDED_MOSTLY, text))
    return flags


def origin_flags(
    arguments: Mapping[str, Any], context: RunContext, currency: str
) -> tuple[Flag, ...]:
    """Return what is unusual about where the values come from that move the money."""
    unnamed: list[str] = []
    read: list[str] = []
    labels = _labels()
    for name in _MOVING:
        value = str(arguments.get(name) or "").strip()
        if not value or stands(name, value, context.words, currency):
            continue
        told = any(stands(name, value, (text,), currency) for _label, text in context.told)
        (read if told else unnamed).append(labels[name])
    flags = []
    if unnamed:
        text = _("Not in the staff member's own words: {values}.")
        flags.append(_flag(Risk.VALUE_UNNAMED, text.format(values=", ".join(unnamed))))
    if read:
        text = _("Not said by the staff member but read in a record: {values}.")
        flags.append(_flag(Risk.VALUE_READ, text.format(values=", ".join(read))))
    return tuple(flags)


def origin_flags_kept(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """Return the flags about where values come from: what was said then does not change."""
    return tuple(flag for flag in flags if flag["flag"] in _OF_ORIGIN)


def stands(name: str, value: str, words: Sequence[str], currency: str) -> bool:
    """Tell whether the value of an argument stands in one of these texts."""
    if name == "amount":
        try:
            return amount_in_words(money_parse(value, currency), currency, words)
        except MoneyInvalid:
            return False
    if name == "reason":
        return any(plain(value) in plain(message) for message in words)
    return key_in_words(value, words) or key_in_words(value.removeprefix("PAY-"), words)


def _new(first: Any) -> list[Flag]:
    if first is None:
        return [_flag(Risk.CUSTOMER_NEW, _("This customer has paid nothing before."))]
    if first < timezone.now() - timedelta(days=NEW_DAYS):
        return []
    text = _("This customer's first payment was on {day}.")
    return [_flag(Risk.CUSTOMER_NEW, text.format(day=timezone.localdate(first).isoformat()))]


def _unusual(asked: Money, count: int, total_minor: int) -> list[Flag]:
    if count < UNUSUAL_PAYMENTS or asked.amount_minor * count <= total_minor * UNUSUAL_TIMES:
        return []
    text = _("{amount} is more than {times} times this customer's usual payment of {usual}.")
    said = text.format(
        amount=money_format(asked),
        times=UNUSUAL_TIMES,
        usual=money_format(Money(total_minor // count, asked.currency)),
    )
    return [_flag(Risk.AMOUNT_UNUSUAL, said)]


def _labels() -> dict[str, str]:
    return {
        "payment": _("the payment"),
        "invoice": _("the invoice"),
        "amount": _("the amount"),
        "method": _("the way to pay"),
    }


def _flag(risk: Risk, text: str) -> Flag:
    return {"flag": risk.value, "text": text}
