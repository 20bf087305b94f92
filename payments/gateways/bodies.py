"""Bodies and look-ups in Stripe's wire format; shared by every gateway that speaks it. Pure.

Our amounts are ISO 4217 minor units. Stripe's are the same but for the currencies listed here
(https://docs.stripe.com/currencies#special-cases).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from uuid import UUID

from django.utils.translation import gettext as _

from payments.errors import AmountRefused
from payments.gateways.base import Order
from payments.states import Operation

# Without decimals by ISO 4217, and still told in hundredths.
_IN_HUNDREDTHS: Final = frozenset({"ISK", "UGX"})
# With two decimals by ISO 4217, and told in whole units.
_IN_WHOLE: Final = frozenset({"MGA"})
# With three decimals, of which the last must be zero.
_LAST_IS_ZERO: Final = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})

PAGE: Final = 100
MOST_PAGES: Final = 200
CLOCKS_APART: Final = timedelta(hours=1)


def stripe_amount(amount_minor: int, currency: str) -> int:
    """Turn ISO minor units into Stripe's.

    Raises:
        AmountRefused: Stripe cannot take this amount of this currency.
    """
    if currency in _IN_HUNDREDTHS:
        return amount_minor * 100
    step = 10 if currency in _LAST_IS_ZERO else 100 if currency in _IN_WHOLE else 1
    if amount_minor % step:
        text = (
            _("The payment processor takes {currency} in whole units only.")
            if step == 100
            else _("The payment processor takes {currency} only with a last decimal of zero.")
        )
        raise AmountRefused(text.format(currency=currency))
    return amount_minor // 100 if currency in _IN_WHOLE else amount_minor


def iso_amount(amount: int, currency: str) -> int:
    """Turn Stripe's units into ISO minor units.

    Raises:
        AmountRefused: it is no whole number of ISO minor units.
    """
    if currency in _IN_WHOLE:
        return amount * 100
    if currency not in _IN_HUNDREDTHS:
        return amount
    if amount % 100:
        text = _("The payment processor takes {currency} in whole units only.")
        raise AmountRefused(text.format(currency=currency))
    return amount // 100


def charge_body(
    *, intent_id: UUID, amount_minor: int, currency: str, method_ref: str, reference: str
) -> dict[str, str]:
    """Build what a charge sends: confirmed at once, with nobody there to confirm it by hand.

    `method_ref` is a payment method, or "customer/method" for one that is kept with a customer.
    """
    customer, _slash, method = method_ref.rpartition("/")
    body = {
        "amount": str(stripe_amount(amount_minor, currency)),
        "currency": currency.lower(),
        "payment_method": method,
        "confirm": "true",
        "off_session": "true",
        "automatic_payment_methods[enabled]": "true",
        "automatic_payment_methods[allow_redirects]": "never",
        "metadata[intent]": str(intent_id),
        "metadata[reference]": reference,
    }
    return body | ({"customer": customer} if customer else {})


def refund_body(
    *, intent_id: UUID, amount_minor: int, currency: str, payment_ref: str, reference: str
) -> dict[str, str]:
    """Build what a refund sends. `payment_ref` is a payment intent, or an older charge."""
    target = "charge" if payment_ref.startswith(("ch_", "py_")) else "payment_intent"
    return {
        target: payment_ref,
        "amount": str(stripe_amount(amount_minor, currency)),
        "metadata[intent]": str(intent_id),
        "metadata[reference]": reference,
    }


def look_up(order: Order) -> dict[str, str]:
    """Build the query of a list that must hold what an order has made, if it has made anything."""
    since = order.since - CLOCKS_APART
    query = {"limit": str(PAGE), "created[gte]": str(int(since.timestamp()))}
    if order.operation == Operation.REFUND:
        target = "charge" if "charge" in order.body else "payment_intent"
        query[target] = order.body[target]
    return query
