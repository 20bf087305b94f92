"""What the pages of reviews must know of the ledger; `reviews` reaches it through the settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from payments.currencies import EXPONENTS
from payments.models import Customer, Invoice, Payment, Refund, Team
from payments.money import Money, MoneyInvalid, money_format, money_in, money_parse
from payments.selectors import payment_spellings, scope_of
from reviews.models import Review

RULE_NAMES: Final[Mapping[str, Any]] = {
    "refund.always": _("every refund"),
    "charge.above": _("charge above the limit"),
    "charge.unnamed": _("charge that the staff member did not name"),
    "unlisted": _("no rule covers it"),
}
"""How people call the rules that ask for a review."""

_RECORDS: Final[Mapping[str, tuple[type[Model], str, str]]] = {
    "refund": (Payment, "payments.view_payment", "admin:payments_payment_change"),
    "charge": (Invoice, "payments.view_invoice", "admin:payments_invoice_change"),
}


class Ledger:
    """The ledger's answers to `reviews.ledger.Ledger`."""

    def amount(self, amount_minor: int, currency: str) -> str:
        """Write an amount in the reader's language; a currency nobody knows stays as it is."""
        if currency not in EXPONENTS:
            return f"{amount_minor} {currency}".strip()
        return money_format(Money(amount_minor, currency))

    def text(self, text: str, amount_minor: int, currency: str) -> str:
        """Write a stored sentence with this amount as the reader writes it."""
        if currency not in EXPONENTS:
            return text
        return money_in(text, Money(amount_minor, currency))

    def amount_read(self, text: str, currency: str) -> int | None:
        """Read an amount of a form in the reader's language; None when it is no clear one."""
        try:
            return money_parse(text, currency, get_language())
        except MoneyInvalid:
            return None

    def teams(self, ids: Collection[UUID]) -> Mapping[UUID, str]:
        """Return the names of these teams."""
        return dict(Team.objects.filter(pk__in=ids).values_list("pk", "name"))

    def subjects_found(self, user: User, text: str) -> Collection[UUID]:
        """Return the payments and invoices that a customer or a reference means.

        Reviews outside the user's reach are left out by their own selector, whatever this finds.
        """
        bare = " ".join(text.split())
        upper = bare.upper().removeprefix("#")
        customer = (
            Q(customer__name__icontains=bare)
            | Q(customer__email__iexact=bare)
            | Q(customer__reference=upper)
        )
        own = Q() if user.is_superuser else Q(customer__team__in=scope_of(user))
        if user.has_perm("audit.view_entry"):
            own = Q()
        refunded = Refund.objects.filter(reference=upper).values("payment_id")
        payments = customer | Q(reference__in=payment_spellings(bare)) | Q(pk__in=refunded)
        found = Payment.objects.filter(own, payments).values_list("pk", flat=True)
        owed = Invoice.objects.filter(own, customer | Q(reference=upper))
        return {*found, *owed.values_list("pk", flat=True)}

    def rule_name(self, rule: str) -> str:
        """Name a rule in a few words; one without a name is read as it is written."""
        return str(RULE_NAMES.get(rule) or rule.replace(".", ": ").replace("_", " "))

    def record(self, user: User, review: Review) -> tuple[str, str] | None:
        """Return name and address of the record that a review is about, if the user may see it."""
        if review.kind not in _RECORDS or review.subject_id is None:
            return None
        model, right, route = _RECORDS[review.kind]
        record = model._default_manager.filter(pk=review.subject_id).first()
        if record is None or not (user.is_staff and user.has_perm(right)):
            return None
        return str(record), reverse(route, args=[record.pk])


def reach_of(user: User) -> tuple[QuerySet[User], QuerySet[Customer]]:
    """Return the colleagues in this person's teams and the customers of those teams."""
    teams = scope_of(user)
    colleagues = User.objects.filter(teams__in=teams)
    return colleagues, Customer.objects.filter(team__in=teams)
