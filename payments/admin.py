"""Look at customers and the ledger in the administration; nothing here moves or alters money."""

from __future__ import annotations

from typing import Any, ClassVar, Final, cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from payments.models import Customer, Intent, Invoice, Pause, Payment, PaymentMethod, Refund, Team
from payments.money import Money, money_format
from payments.receipts.models import Document
from payments.receipts.services import content_of
from payments.selectors import scope_of
from payments.states import Operation
from reviews.admin_rights import ByWhatIsShown
from reviews.audit.recorded import Recorded
from reviews.models import Review
from reviews.selectors import reviews_visible

SEES_ALL: Final = "audit.view_entry"


class ReadOnlyAdmin(ByWhatIsShown, admin.ModelAdmin[Any]):
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


class ReadOnlyInline(admin.TabularInline[Any, Any]):
    """Show the rows that belong to the one on the page, each with a link to its own."""

    extra = 0
    can_delete = False
    show_change_link = True
    readonly_fields: ClassVar[tuple[str, ...]] = ("amount",)

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: rows come from the ledger."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: a row that a person may edit proves nothing."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: what was paid was paid."""
        return False

    @admin.display(description=_("Amount"))
    def amount(self, row: Invoice | Payment | Refund) -> str:
        """Write the amount as everywhere else."""
        return money_format(Money(row.amount_minor, row.currency))


class PaymentInline(ReadOnlyInline):
    """The payments of a customer."""

    model = Payment
    fields = ("reference", "amount", "state", "disputed", "paid_at")
    ordering = ("-paid_at",)


class InvoiceInline(ReadOnlyInline):
    """The invoices of a customer."""

    model = Invoice
    fields = ("reference", "amount", "state", "issued_on", "due_on")
    ordering = ("-issued_on",)


class RefundInline(ReadOnlyInline):
    """The refunds of a payment."""

    model = Refund
    fields = ("reference", "amount", "state", "reason", "created_at")
    ordering = ("-created_at",)


def reviews_linked(request: HttpRequest, reviews: QuerySet[Review]) -> str:
    """Link to reviews, as far as the person may look at them."""
    seen = reviews_visible(cast("User", request.user)).filter(pk__in=reviews.values("pk"))
    rows = (
        (reverse("admin:reviews_review_change", args=[row.pk]), row.title, row.get_state_display())
        for row in seen
    )
    return format_html_join("; ", '<a href="{}"><bdi>{}</bdi></a> ({})', rows)


class ReviewsShown(ReadOnlyAdmin):
    """A page that links to the reviews about its record."""

    readonly_fields: ClassVar[tuple[str, ...]] = ("reviews",)

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """Put the links beside the row, with the rights of whoever looks."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.reviews_seen = reviews_linked(request, self.reviews_of(row))
        return row

    def reviews_of(self, row: Any) -> QuerySet[Review]:
        """Select the reviews about a row."""
        return Review.objects.filter(subject_id=row.pk)

    @admin.display(description=_("Reviews"))
    def reviews(self, row: Any) -> str:
        """Link to what people were asked about it."""
        return cast("str", getattr(row, "reviews_seen", ""))


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
    list_filter = (("team", admin.RelatedOnlyFieldListFilter), "language")
    list_select_related = ("team",)
    inlines = (InvoiceInline, PaymentInline)
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
class InvoiceAdmin(ReviewsShown):
    """Invoices."""

    team_path = "customer__team"
    list_display = ("reference", "customer", "amount", "state", "issued_on", "due_on")
    ordering = ("-issued_on", "reference")
    list_filter = (
        "state",
        "currency",
        "due_on",
        ("customer__team", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("customer",)
    search_fields = ("reference", "customer__reference", "customer__email", "customer__name")
    inlines = (PaymentInline,)
    fields = (
        "reference",
        "customer",
        "description",
        "amount",
        "state",
        "issued_on",
        "due_on",
        "reviews",
    )


@admin.register(Payment)
class PaymentAdmin(ReviewsShown):
    """Payments."""

    team_path = "customer__team"
    list_display = ("reference", "customer", "amount", "state", "disputed", "paid_at")
    ordering = ("-paid_at", "reference")
    list_filter = (
        "state",
        "disputed",
        "currency",
        "paid_at",
        ("customer__team", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("customer",)
    inlines = (RefundInline,)
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
        "reviews",
    )


@admin.register(Refund)
class RefundAdmin(ReviewsShown):
    """Refunds."""

    team_path = "payment__customer__team"
    list_display = (
        "reference",
        "payment",
        "customer",
        "amount",
        "state",
        "requested_by",
        "created_at",
    )
    ordering = ("-created_at", "reference")
    list_filter = (
        "state",
        "currency",
        "created_at",
        ("payment__customer__team", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("payment__customer", "requested_by")
    search_fields = (
        "reference",
        "payment__reference",
        "payment__customer__reference",
        "payment__customer__email",
        "payment__customer__name",
    )
    fields = (
        "reference",
        "payment",
        "amount",
        "reason",
        "state",
        "requested_by",
        "created_at",
        "settled_at",
        "reviews",
    )

    def reviews_of(self, row: Refund) -> QuerySet[Review]:
        """Select the review that allowed it."""
        return Review.objects.filter(pk__in=[row.review_id])

    @admin.display(description=_("Customer"), ordering="payment__customer__name")
    def customer(self, row: Refund) -> str:
        """Name who gets the money."""
        return str(row.payment.customer)


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
class IntentAdmin(ReviewsShown):
    """What was wanted of the processor and what came of it, for the teams of its customer."""

    list_display = ("created_at", "operation", "amount", "state", "requester", "tries")
    ordering = ("-created_at",)
    list_filter = ("state", "operation", "currency", "created_at")
    list_select_related = ("requester",)
    search_fields = ("payment__reference", "refund__reference", "requester__username")
    fields = (
        "operation",
        "about",
        "amount",
        "state",
        "requester",
        "tries",
        "next_try_at",
        "created_at",
        "settled_at",
        "failure_code",
        "reviews",
    )
    readonly_fields = ("about", "reviews")

    def reviews_of(self, row: Intent) -> QuerySet[Review]:
        """Select the review that allowed it."""
        return Review.objects.filter(Q(pk__in=[row.review_id]) | Q(call_id=row.call_id))

    @admin.display(description=_("About"))
    def about(self, row: Intent) -> str:
        """Link to the invoice that is charged, or the payment that is refunded."""
        model = Invoice if row.operation == Operation.CHARGE else Payment
        found = model._default_manager.filter(pk=row.target_id).first()
        if found is None:
            return ""
        route = f"admin:payments_{found._meta.model_name}_change"
        return format_html('<a href="{}">{}</a>', reverse(route, args=[found.pk]), found)

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


@admin.register(Pause)
class PauseAdmin(ReadOnlyAdmin):
    """When operations paused refunds, and why; they are paused and let go on in Desk."""

    list_display = ("operation", "paused_at", "paused_by", "reason", "resumed_at", "resumed_by")
    list_filter = ("operation", "paused_at")
    list_select_related = ("paused_by", "resumed_by")
    search_fields = ("reason", "paused_by__username")
    fields = (*list_display, "resumed_reason")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return all: a pause is about everybody's refunds."""
        return admin.ModelAdmin.get_queryset(self, request)
