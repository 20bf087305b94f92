"""The filters of the list of reviews; each narrows what the person may see anyway."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, ClassVar, Final, cast
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from reviews.admin_rights import actor_of
from reviews.ledger import ledger
from reviews.models import Review
from reviews.selectors import reviews_visible
from reviews.states import Risk, State

Choices = list[tuple[str, str]]
Reviews = QuerySet[Review]
NONE: Final = "-"

AGES: Final = {
    "1h": (timedelta(hours=1), gettext_lazy("longer than an hour")),
    "4h": (timedelta(hours=4), gettext_lazy("longer than 4 hours")),
    "1d": (timedelta(days=1), gettext_lazy("longer than a day")),
}
SOON: Final = timedelta(hours=1)


class RuleFilter(admin.SimpleListFilter):
    """Keep what one rule asked for."""

    title = gettext_lazy("rule")
    parameter_name = "rule"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the rules that occur."""
        rules = _occurring(request, "rule")
        return [(rule or NONE, _rule_name(rule)) for rule in sorted(rules)]

    def queryset(self, request: HttpRequest, queryset: Reviews) -> Reviews:
        """Keep this rule's."""
        value = self.value()
        return queryset.filter(rule=value.replace(NONE, "")) if value else queryset


class RiskFilter(admin.SimpleListFilter):
    """Keep what carries one flag, any, or none."""

    title = gettext_lazy("risk")
    parameter_name = "risk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the flags there are."""
        return [
            ("any", _("any")),
            (NONE, _("none")),
            *((risk.value, str(risk.label)) for risk in Risk),
        ]

    def queryset(self, request: HttpRequest, queryset: Reviews) -> Reviews:
        """Keep what carries it."""
        value = self.value()
        if value == "any":
            return queryset.exclude(flags=[])
        if value == NONE:
            return queryset.filter(flags=[])
        return queryset.filter(flags__contains=[{"flag": value}]) if value else queryset


class TeamFilter(admin.SimpleListFilter):
    """Keep one team's."""

    title = gettext_lazy("team")
    parameter_name = "team"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the teams that occur, by name."""
        names = ledger().teams(_occurring(request, "team_id") - {None})
        return sorted(((str(pk), name) for pk, name in names.items()), key=lambda one: one[1])

    def queryset(self, request: HttpRequest, queryset: Reviews) -> Reviews:
        """Keep this team's; what is no team's id keeps nothing."""
        value = self.value()
        if not value:
            return queryset
        try:
            return queryset.filter(team_id=UUID(value))
        except ValueError:
            return queryset.none()


class RequesterFilter(admin.SimpleListFilter):
    """Keep what one person asked for."""

    title = gettext_lazy("asked by")
    parameter_name = "asker"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the people who have asked for something that is visible here."""
        rows = reviews_visible(actor_of(request)).order_by()
        names = ("requested_by_id", "requested_by__username", "requested_by__first_name")
        people = set(rows.values_list(*names, "requested_by__last_name"))
        shown = [
            (str(pk), f"{first} {last}".strip() or account) for pk, account, first, last in people
        ]
        return sorted(shown, key=lambda one: one[1])

    def queryset(self, request: HttpRequest, queryset: Reviews) -> Reviews:
        """Keep this person's."""
        value = self.value()
        if not value:
            return queryset
        known = value.isascii() and value.isdigit() and len(value) < 10
        return queryset.filter(requested_by_id=int(value)) if known else queryset.none()


class AgeFilter(admin.SimpleListFilter):
    """Keep what has waited long, or has not long to wait."""

    title = gettext_lazy("waiting")
    parameter_name = "waiting"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        """Offer the spans."""
        return [
            ("soon", _("ends within an hour")),
            *((key, str(words)) for key, (_span, words) in AGES.items()),
        ]

    def queryset(self, request: HttpRequest, queryset: Reviews) -> Reviews:
        """Keep what waits, and so long."""
        value, now = self.value(), timezone.now()
        if value == "soon":
            waits = queryset.filter(state=State.PENDING, expires_at__gt=now)
            return waits.filter(expires_at__lte=now + SOON)
        if value in AGES:
            return queryset.filter(state=State.PENDING, created_at__lte=now - AGES[value][0])
        return queryset


class AmountFilter(admin.ListFilter):
    """Keep amounts of one currency from and to; a range over several currencies means nothing."""

    title = gettext_lazy("amount")
    template = "admin/reviews/review/amount_filter.html"
    names: ClassVar[tuple[str, ...]] = ("currency", "amount_from", "amount_to")

    def __init__(
        self, request: HttpRequest, params: dict[str, list[str]], model: Any, model_admin: Any
    ) -> None:
        """Take this filter's own parameters out of the request's."""
        super().__init__(request, params, model, model_admin)
        self.given = {name: params.pop(name)[-1][:40] for name in self.names if name in params}
        self.used_parameters = {**self.given}
        self.currencies = sorted(_occurring(request, "currency") - {""})
        self.unread = ""

    def expected_parameters(self) -> list[str | None]:
        """Return the parameters that are this filter's."""
        return [*self.names]

    def has_output(self) -> bool:
        """Show it where there is anything with an amount."""
        return bool(self.currencies)

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Describe the form, with the other filters as they stand."""
        others = changelist.get_filters_params()
        kept = [
            (name, value)
            for name, values in others.items()
            if name not in self.names
            for value in (values if isinstance(values, list) else [values])
        ]
        yield {
            "kept": [*kept, *([("q", changelist.query)] if changelist.query else [])],
            "currencies": self.currencies,
            "given": self.given,
            "unread": self.unread,
            "clear": changelist.get_query_string(remove=[*self.names]),
        }

    def queryset(self, request: HttpRequest, queryset: Reviews) -> Reviews:
        """Keep the range; an amount that cannot be read is said so, and keeps nothing."""
        currency = self.given.get("currency", "")
        if currency not in self.currencies:
            return queryset.none() if currency else queryset
        queryset = queryset.filter(currency=currency)
        for name, lookup in (("amount_from", "gte"), ("amount_to", "lte")):
            text = self.given.get(name, "").strip()
            if not text:
                continue
            amount = ledger().amount_read(text, currency)
            if amount is None:
                self.unread = _("“%(text)s” is not an amount in %(currency)s.") % {
                    "text": text,
                    "currency": currency,
                }
                return queryset.none()
            queryset = queryset.filter(**{f"amount_minor__{lookup}": amount})
        return queryset


FILTERS: Final = (
    "state",
    "kind",
    AgeFilter,
    RiskFilter,
    RuleFilter,
    AmountFilter,
    TeamFilter,
    RequesterFilter,
)


def _occurring(request: HttpRequest, field: str) -> set[Any]:
    """Return the values of a field in what this person may see."""
    rows = reviews_visible(actor_of(request)).order_by()
    return set(cast("Any", rows.values_list(field, flat=True).distinct()))


def _rule_name(rule: str) -> str:
    return ledger().rule_name(rule) if rule else _("not recorded")
