"""Every read of customers and money, within the teams of whoever asks.

Tools, reviews and exports look here; a record outside the asker's teams is the same as none.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q, QuerySet
from django.utils import timezone

from payments.models import (
    Breaker,
    Customer,
    Intent,
    Invoice,
    Pause,
    Payment,
    PaymentMethod,
    Refund,
)
from payments.periods import Period
from payments.states import REFUND_COUNTS, IntentState, InvoiceState, RefundState
from payments.words import keys_in, plain

log = logging.getLogger(__name__)

MATCHES_SHOWN: Final = 5
OTHER_REFUNDS_DAYS: Final = 30
TeamIds = Collection[UUID]


def scope_of(user: User) -> frozenset[UUID]:
    """Return the teams whose customers this user may see, read now."""
    if not user.is_active:
        return frozenset()
    with connection.cursor() as cursor:
        # Before every model call and every effect: by hand it costs a quarter of Django's own.
        cursor.execute("SELECT team_id FROM payments_team_members WHERE user_id = %s", [user.pk])
        return frozenset(team for (team,) in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Found:
    """The first customers that match a key, and how many there are."""

    customers: tuple[Customer, ...]
    total: int

    @property
    def single(self) -> Customer | None:
        """Return the customer when the key matches exactly one."""
        return self.customers[0] if self.total == 1 else None


def customer_find(team_ids: TeamIds, key: str, *, asker: int | None = None) -> Found:
    """Return the customers in these teams whom an address, name or reference means.

    An exact address or reference wins over a part of a name. Misses cost the same whether the
    record is absent or another team's; the latter is only written to the log.
    """
    exact = Customer.objects.filter(_is_key(key)).distinct()
    match = _found(exact.filter(team_id__in=team_ids))
    if not match.total:
        match = _found(Customer.objects.filter(_has_name(key), team_id__in=team_ids))
    if not match.total:
        _audit_denied(exact, team_ids, asker, "customer")
    return match


def key_means(customer: Customer, key: str, team_ids: TeamIds) -> bool:
    """Tell whether this key means this customer, though it may fit others too."""
    mine = Customer.objects.filter(pk=customer.pk, team_id__in=team_ids)
    return mine.filter(_is_key(key) | _has_name(key)).exists()


def customers_named(team_ids: TeamIds, words: Sequence[str]) -> tuple[Customer, ...]:
    """Return the customers in these teams whom addresses and references in the words name."""
    wanted = Q(pk__in=())
    keys = keys_in(words)
    for key in keys:
        wanted |= _is_key(key)
    if not keys:
        return ()
    return tuple(Customer.objects.filter(wanted, team_id__in=team_ids).distinct().order_by("name"))


def customer_by_id(team_ids: TeamIds, customer_id: UUID) -> Customer | None:
    """Return the customer if it is in one of these teams."""
    return Customer.objects.filter(pk=customer_id, team_id__in=team_ids).first()


def payment_by_reference(
    team_ids: TeamIds, customer_id: UUID | None, reference: str, *, asker: int | None = None
) -> Payment | None:
    """Return the customer's payment; another customer's or team's is the same as none."""
    named = Payment.objects.filter(reference__in=payment_spellings(reference))
    payment = (
        named.filter(customer__in=_one(customer_id), customer__team_id__in=team_ids)
        .select_related("customer", "method")
        .first()
    )
    if payment is None:
        _audit_denied(named, (), asker, "payment")
    return payment


def invoice_by_reference(
    team_ids: TeamIds, customer_id: UUID | None, reference: str, *, asker: int | None = None
) -> Invoice | None:
    """Return the customer's invoice; another customer's or team's is the same as none."""
    named = Invoice.objects.filter(reference=reference.strip().upper())
    invoice = (
        named.filter(customer__in=_one(customer_id), customer__team_id__in=team_ids)
        .select_related("customer")
        .first()
    )
    if invoice is None:
        _audit_denied(named, (), asker, "invoice")
    return invoice


def refunds_by_payment(payments: Sequence[Payment]) -> dict[UUID, list[Refund]]:
    """Return by payment what was refunded or is on its way back, for a whole list at once."""
    rows = Refund.objects.filter(payment__in=payments, state__in=REFUND_COUNTS)
    found: dict[UUID, list[Refund]] = {}
    for refund in rows.order_by("-created_at", "reference"):
        found.setdefault(refund.payment_id, []).append(refund)
    return found


def payment_currency(team_ids: TeamIds, reference: str) -> str | None:
    """Return the currency of a payment in these teams, for comparing two calls.

    Another team's has none: whether two amounts are alike would tell that it exists.
    """
    named = Payment.objects.filter(
        reference__in=payment_spellings(reference), customer__team_id__in=team_ids
    )
    return named.values_list("currency", flat=True).first()


def payment_spellings(reference: str) -> tuple[str, ...]:
    """Return the references that this text may mean: "#W2611340" is "PAY-W2611340"."""
    bare = reference.strip().upper().removeprefix("#")
    return (bare, f"PAY-{bare}")


def payments_of(customer: Customer, period: Period | None = None) -> QuerySet[Payment]:
    """Return the customer's payments, newest first."""
    rows = Payment.objects.filter(customer=customer).select_related("method")
    if period is not None:
        start, after = period.bounds(UTC)
        rows = rows.filter(paid_at__gte=start, paid_at__lt=after)
    return rows.order_by("-paid_at", "reference")


def refunds_of(customer: Customer, period: Period | None = None) -> QuerySet[Refund]:
    """Return the refunds to the customer that were not turned down, newest first."""
    rows = Refund.objects.filter(payment__customer=customer).exclude(state=RefundState.FAILED)
    if period is not None:
        start, after = period.bounds(UTC)
        rows = rows.filter(created_at__gte=start, created_at__lt=after)
    return rows.select_related("payment").order_by("-created_at", "reference")


def open_invoices_of(customer: Customer) -> QuerySet[Invoice]:
    """Return what the customer still owes, the oldest first."""
    return Invoice.objects.filter(customer=customer, state=InvoiceState.OPEN).order_by(
        "due_on", "reference"
    )


def methods_of(customer: Customer) -> QuerySet[PaymentMethod]:
    """Return what the customer can be charged on, the default first."""
    return PaymentMethod.objects.filter(customer=customer).order_by("-is_default", "kind", "last4")


def method_of(customer: Customer, method_id: UUID) -> PaymentMethod:
    """Return the customer's way to pay by its id."""
    return PaymentMethod.objects.get(pk=method_id, customer=customer)


def methods_fitting(customer: Customer, text: str) -> list[PaymentMethod]:
    """Return the saved ways to pay that a text means; an empty one means the usual way."""
    ways = list(methods_of(customer))
    wanted = plain(text)
    if not wanted:
        usual = [way for way in ways if way.is_default]
        return usual or (ways if len(ways) == 1 else [])
    digits = re.search(r"(?<![0-9])[0-9]{4}$", wanted)
    if digits:
        return [way for way in ways if way.last4 == digits.group()]
    names = wanted.replace("_", " ")
    return [way for way in ways if names in (plain(way.brand), plain(way.get_kind_display()))]


def refunds_lately(customer: Customer, now: datetime | None = None) -> list[Refund]:
    """Return the refunds to this customer of the last 30 days, for the reviewer to watch."""
    since = (now or timezone.now()) - timedelta(days=OTHER_REFUNDS_DAYS)
    return list(refunds_of(customer).filter(created_at__gte=since))


def disputes_of(customer: Customer) -> int:
    """Return how many of the customer's payments are disputed at the bank."""
    return Payment.objects.filter(customer=customer, disputed=True).count()


def _one(customer_id: UUID | None) -> list[UUID]:
    return [] if customer_id is None else [customer_id]


def _is_key(key: str) -> Q:
    """Match whole addresses and references; an order number means its payment."""
    bare = " ".join(key.split())
    upper = bare.upper().removeprefix("#")
    return (
        Q(email__iexact=bare)
        | Q(reference__in=(upper, f"CUS-{upper}".replace("_", "-")))
        | Q(payments__reference__in=payment_spellings(bare))
        | Q(invoices__reference=upper)
        | Q(payments__refunds__reference=upper)
    )


def _has_name(key: str) -> Q:
    """Match a part of a name, or the part of an address before its at sign."""
    bare = " ".join(key.split())
    if len(plain(bare)) < 2:
        return Q(pk__in=())
    return Q(name__icontains=bare) | Q(email__istartswith=f"{bare}@")


def _found(rows: QuerySet[Customer]) -> Found:
    """Read one more than is shown, so that "and more" needs no second query."""
    first = tuple(rows.order_by("name", "reference")[: MATCHES_SHOWN + 1])
    if len(first) <= MATCHES_SHOWN:
        return Found(first, len(first))
    return Found(first[:MATCHES_SHOWN], rows.count())


def _audit_denied(
    named: QuerySet[Customer] | QuerySet[Payment] | QuerySet[Invoice],
    team_ids: TeamIds,
    asker: int | None,
    kind: str,
) -> None:
    """Note in the log alone that a record exists which the asker may not reach.

    Query and log line come on every miss, and the query reads to its end, so that a miss takes the
    same time either way.
    """
    rows = list(named.order_by().values_list("pk", flat=True))
    event = "scope.denied" if rows else "scope.missed"
    fields = {"kind": kind, "record": str(rows[0]) if rows else "", "asker": asker}
    log.log(logging.WARNING if rows else logging.INFO, event, extra=fields)


def intents_checked() -> QuerySet[Intent]:
    """List the effects of all teams whose outcome is being asked for, for operators."""
    rows = Intent.objects.filter(state=IntentState.OPEN, unknown_at__isnull=False)
    return rows.order_by("created_at")


def pauses() -> QuerySet[Pause]:
    """List the times in which refunds were paused, the latest first, for operators."""
    return Pause.objects.select_related("paused_by", "resumed_by")


def breakers_tripped() -> QuerySet[Breaker]:
    """Select the gateways that are left alone for now, or that refuse our access."""
    tripped = Q(rests_until__isnull=False) | Q(refused_at__isnull=False)
    return Breaker.objects.filter(tripped).order_by("gateway")
