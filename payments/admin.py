"""Look at customers and the ledger in the administration; nothing here moves or alters money."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from payments.models import Customer, Intent, Invoice, Payment, PaymentMethod, Refund, Team
from payments.money import Money, money_format
from payments.receipts.models import Document
from payments.receipts.services import content_of
from payments.selectors import scope_of
from reviews.audit.recorded import Recorded

SEES_ALL: Final = "audit.view_entry"


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """Show rows of the person's own teams; refuse adding, changing and deleting on every route."""

    team_path: ClassVar[str] = ""
    actions = None
    list_per_page = 50
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return what belongs to the teams of the person; a superuser and an auditor see all."""
        rows = super().get_queryset(request)
        user = request.user
        if not isinstance(user, User):
            return rows.none()
        if user.has_perm(SEES_ALL):
            return rows
        return rows.filter(**{f"{self.team_path}__in": scope_of(user)})

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Refuse: rows come from the ledger."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: a row that a person may edit proves nothing."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: what was paid was paid."""
        return False

    @admin.display(description=_("Amount"), ordering="amount_minor")
    def amount(self, row: Invoice | Payment | Refund | Intent) -> str:
        """Write the amount as everywhere else."""
        return money_format(Money(row.amount_minor, row.currency))


@admin.register(Team)
class TeamAdmin(Recorded, admin.ModelAdmin[Team]):
    """Who sees whose customers. A team is never deleted: its customers belong to it."""

    list_display = ("name",)
    search_fields = ("name", "members__username")
    filter_horizontal = ("members",)
    actions = None

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: the customers would be nobody's."""
        return False


@admin.register(Customer)
class CustomerAdmin(ReadOnlyAdmin):
    """Customers."""

    team_path = "team"
    list_display = ("reference", "name", "email", "team")
    ordering = ("name", "reference")
    list_filter = ("team",)
    search_fields = ("reference", "name", "email")
    fields = ("reference", "name", "email", "team", "language", "created_at")


@admin.register(PaymentMethod)
class PaymentMethodAdmin(ReadOnlyAdmin):
    """Saved ways to pay, without the processor's token."""

    team_path = "customer__team"
    list_display = ("customer", "kind", "brand", "last4", "is_default")
    list_filter = ("kind",)
    list_select_related = ("customer",)
    search_fields = ("customer__reference", "customer__email", "last4")
    fields = ("customer", "kind", "brand", "last4", "is_default")


@admin.register(Invoice)
class InvoiceAdmin(ReadOnlyAdmin):
    """Invoices."""

    team_path = "customer__team"
    list_display = ("reference", "customer", "amount", "state", "issued_on", "due_on")
    ordering = ("-issued_on", "reference")
    list_filter = ("state", "currency")
    list_select_related = ("customer",)
    search_fields = ("reference", "customer__reference", "customer__email", "customer__name")
    fields = ("reference", "customer", "description", "amount", "state", "issued_on", "due_on")


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    """Payments."""

    team_path = "customer__team"
    list_display = ("reference", "customer", "amount", "state", "disputed", "paid_at")
    ordering = ("-paid_at", "reference")
    list_filter = ("state", "disputed", "currency")
    list_select_related = ("customer",)
    search_fields = ("reference", "customer__reference", "customer__email", "customer__name")
    fields = (
        "reference",
        "customer",
        "invoice",
        "method",
        "amount",
        "state",
        "disputed",
        "paid_at",
        "processor_ref",
    )


@admin.register(Refund)
class RefundAdmin(ReadOnlyAdmin):
    """Refunds."""

    team_path = "payment__customer__team"
    list_display = ("reference", "payment", "amount", "state", "requested_by", "created_at")
    ordering = ("-created_at", "reference")
    list_filter = ("state", "currency")
    list_select_related = ("payment", "requested_by")
    search_fields = ("reference", "payment__reference", "payment__customer__email")
    fields = (
        "reference",
        "payment",
        "amount",
        "reason",
        "state",
        "requested_by",
        "created_at",
        "settled_at",
        "processor_ref",
    )


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """The documents that customers got, as they were issued."""

    team_path = "customer__team"
    list_display = ("number", "kind", "customer", "total", "language", "issued_at")
    ordering = ("-issued_at", "number")
    list_filter = ("kind", "year", "language")
    list_select_related = ("customer",)
    search_fields = ("number", "payment__reference", "refund__reference", "customer__reference")
    fields = ("number", "kind", "customer", "payment", "refund", "total", "language", "issued_at")

    @admin.display(description=_("Amount"))
    def total(self, row: Document) -> str:
        """Return the amount as it stands on the document."""
        return content_of(row)["total"]


@admin.register(Intent)
class IntentAdmin(ReadOnlyAdmin):
    """What was wanted of the processor and what came of it, for the teams of its customer."""

    list_display = ("created_at", "operation", "amount", "state", "requester", "tries")
    ordering = ("-created_at",)
    list_filter = ("state", "operation", "currency")
    list_select_related = ("requester",)
    search_fields = ("processor_ref", "payment__reference", "refund__reference")
    fields = (
        "operation",
        "amount",
        "state",
        "requester",
        "tries",
        "next_try_at",
        "created_at",
        "settled_at",
        "processor_ref",
        "failure_code",
    )

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        """Leave out what a bank said of a card, but for those with the right to know."""
        seen = request.user.has_perm("payments.view_decline_code")
        return (*self.fields, "decline_code") if seen else self.fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return what is about an invoice or a payment of the person's teams."""
        rows = admin.ModelAdmin.get_queryset(self, request)
        user = request.user
        if not isinstance(user, User):
            return rows.none()
        if user.has_perm(SEES_ALL):
            return rows
        teams = scope_of(user)
        targets = (model.objects.filter(customer__team__in=teams) for model in (Invoice, Payment))
        invoices, payments = (found.values("pk") for found in targets)
        return rows.filter(Q(target_id__in=invoices) | Q(target_id__in=payments))
