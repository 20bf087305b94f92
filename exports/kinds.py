"""What can be exported: columns and rows of each kind, within the teams of whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from exports.cells import Cell
from payments.models import Payment, Refund
from payments.money import currency_exponent
from payments.periods import Period
from payments.states import MethodKind, PaymentState, RefundState

Row = tuple[Any, ...]
RowQuery = Callable[[Collection[UUID], Period, str], "QuerySet[Any, Row]"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: what people call it, its columns, its rows, and how a row becomes cells."""

    name: str
    label: Promise
    columns: tuple[Promise, ...]
    rows: RowQuery
    cells: Callable[[Row], Sequence[Cell]]


def amount(minor: int, currency: str) -> Decimal:
    """Return minor units as the number that people write: 500 EUR cents are 5.00."""
    return Decimal(minor).scaleb(-currency_exponent(currency))


def _payments(team_ids: Collection[UUID], period: Period, currency: str) -> QuerySet[Any, Row]:
    first, after = period.bounds(UTC)
    rows = Payment.objects.filter(
        customer__team_id__in=team_ids, paid_at__gte=first, paid_at__lt=after
    )
    if currency:
        rows = rows.filter(currency=currency)
    return rows.order_by("paid_at", "reference").values_list(
        "reference",
        "paid_at",
        "customer__reference",
        "customer__name",
        "customer__email",
        "invoice__reference",
        "amount_minor",
        "currency",
        "state",
        "disputed",
        "method__kind",
        "method__brand",
        "method__last4",
    )


def _payment_cells(row: Row) -> Sequence[Cell]:
    *known, minor, currency, state, disputed, kind, brand, last4 = row
    return (
        *known,
        amount(minor, currency),
        currency,
        str(PaymentState(state).label),
        _("yes") if disputed else _("no"),
        " ".join(filter(None, (brand or str(MethodKind(kind).label), last4))),
    )


def _refunds(team_ids: Collection[UUID], period: Period, currency: str) -> QuerySet[Any, Row]:
    first, after = period.bounds(UTC)
    rows = Refund.objects.filter(
        payment__customer__team_id__in=team_ids, created_at__gte=first, created_at__lt=after
    )
    if currency:
        rows = rows.filter(currency=currency)
    return rows.order_by("created_at", "reference").values_list(
        "reference",
        "created_at",
        "settled_at",
        "payment__reference",
        "payment__customer__reference",
        "payment__customer__name",
        "amount_minor",
        "currency",
        "state",
        "reason",
        "requested_by__username",
    )


def _refund_cells(row: Row) -> Sequence[Cell]:
    *known, minor, currency, state, reason, requester = row
    return (
        *known,
        amount(minor, currency),
        currency,
        str(RefundState(state).label),
        reason,
        requester,
    )


_ALL: Final = (
    Kind(
        name="payments",
        label=gettext_lazy("payments"),
        columns=(
            gettext_lazy("Payment"),
            gettext_lazy("Paid at (UTC)"),
            gettext_lazy("Customer"),
            gettext_lazy("Name"),
            gettext_lazy("Email"),
            gettext_lazy("Invoice"),
            gettext_lazy("Amount"),
            gettext_lazy("Currency"),
            gettext_lazy("State"),
            gettext_lazy("Disputed"),
            gettext_lazy("Paid with"),
        ),
        rows=_payments,
        cells=_payment_cells,
    ),
    Kind(
        name="refunds",
        label=gettext_lazy("refunds"),
        columns=(
            gettext_lazy("Refund"),
            gettext_lazy("Asked at (UTC)"),
            gettext_lazy("Settled at (UTC)"),
            gettext_lazy("Payment"),
            gettext_lazy("Customer"),
            gettext_lazy("Name"),
            gettext_lazy("Amount"),
            gettext_lazy("Currency"),
            gettext_lazy("State"),
            gettext_lazy("Reason"),
            gettext_lazy("Asked by"),
        ),
        rows=_refunds,
        cells=_refund_cells,
    ),
)

KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in _ALL}
