"""Reviews in Django's admin: a list, a page with the card, decisions through the services only.

Nothing is added, edited or deleted here. Who may only look gets no button, and a refusal on every
route; the try is kept.
"""

import logging
from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from reviews import words
from reviews.admin_deciding import Submission, forms_for, submission_read
from reviews.admin_filters import FILTERS, SOON
from reviews.admin_page import page_context, reads_conversation
from reviews.admin_rights import LookOnlyAdmin, actor_of
from reviews.errors import AlreadyDecided, Expired, FourEyes, NoRight, NotFound, ReviewRefused
from reviews.forms import version_seen
from reviews.ledger import amount_of, ledger, shown_to_reader, totals_of
from reviews.models import Review
from reviews.selectors import choices_for, reviews_visible
from reviews.services import review_try_refused
from reviews.services_bulk import (
    BULK_MOST,
    Result,
    reviews_approve,
    reviews_reject,
    rules_same_or_refuse,
)
from reviews.services_viewing import review_denied, review_touch_refused, review_viewed
from reviews.states import Channel, Decision, Risk, State

log = logging.getLogger("reviews")

ACTIONS = {"approve_chosen": Decision.APPROVE, "reject_chosen": Decision.REJECT}


@admin.register(Review)
class ReviewAdmin(LookOnlyAdmin):
    """The reviews of a person's teams, to look at or to decide."""

    list_display = (
        "time_left",
        "what",
        "amount",
        "risk",
        "why",
        "requester",
        "team",
        "age",
        "decided",
    )
    list_display_links = ("what",)
    list_filter = FILTERS
    search_fields = ("title", "requested_by__username", "requested_by__last_name")
    search_help_text = gettext_lazy("A customer, a reference of a payment, or who asked.")
    list_per_page = 50
    show_full_result_count = False
    actions = ("approve_chosen", "reject_chosen")

    class Media:
        """The look of flags, steps and times."""

        css: ClassVar = {"all": ("reviews/admin.css",)}

    @admin.display(description=gettext_lazy("request"), ordering="title")
    def what(self, review: Review) -> str:
        """Say what is asked, with the amount as the reader writes it."""
        return shown_to_reader(review, review.title)

    @admin.display(description=gettext_lazy("amount"), ordering="amount_minor")
    def amount(self, review: Review) -> str:
        """Write the amount as everywhere."""
        return format_html('<span class="review-amount">{}</span>', amount_of(review))

    @admin.display(description=gettext_lazy("risk"))
    def risk(self, review: Review) -> str:
        """Name the flags, each with its sentence where one rests on it."""
        names = dict(Risk.choices)
        rows = ((flag["text"], names.get(flag["flag"], flag["text"])) for flag in review.flags)
        return format_html_join(" ", '<span class="review-flag" title="{}">{}</span>', rows)

    @admin.display(description=gettext_lazy("rule"), ordering="rule")
    def why(self, review: Review) -> str:
        """Name the rule that asked for a person."""
        return ledger().rule_name(review.rule) if review.rule else ""

    @admin.display(description=gettext_lazy("asked by"), ordering="requested_by__username")
    def requester(self, review: Review) -> str:
        """Name who asked."""
        return words.person_name(review.requested_by)

    @admin.display(description=gettext_lazy("team"), ordering="team_id")
    def team(self, review: Review) -> str:
        """Name the customer's team."""
        return str(getattr(review, "team_name", ""))

    @admin.display(description=gettext_lazy("age"), ordering="-created_at")
    def age(self, review: Review) -> str:
        """Say how long ago it was asked for."""
        return words.age(review)

    @admin.display(description=gettext_lazy("time left"), ordering="expires_at")
    def time_left(self, review: Review) -> str:
        """Say how long the review still waits, or how it ended; soon is marked in words, too."""
        if review.state != State.PENDING:
            return str(State(review.state).label)
        soon = review.expires_at <= timezone.now() + SOON
        style = "review-soon" if soon else "review-left"
        return format_html('<span class="{}">{}</span>', style, words.time_left(review))

    @admin.display(description=gettext_lazy("decision"), ordering="decided_at")
    def decided(self, review: Review) -> str:
        """Say who decided, and when."""
        return "" if review.state == State.PENDING else words.state_sentence(review)

    # The list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Review]:
        """Leave out what this person may not look at, so that it is not found."""
        return reviews_visible(actor_of(request))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Review], search_term: str
    ) -> tuple[QuerySet[Review], bool]:
        """Find by title and person, and by what the ledger knows under this name or reference."""
        found, twice = super().get_search_results(request, queryset, search_term)
        if search_term.strip():
            subjects = ledger().subjects_found(actor_of(request), search_term)
            # By key: the two lists are joined in different ways and cannot be united as they are.
            named = Q(pk__in=found.order_by().values("pk"))
            found = queryset.filter(named | Q(subject_id__in=subjects))
        return found, twice

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Read the teams of a page at once."""
        changes = super().get_changelist_instance(request)
        names = ledger().teams({row.team_id for row in changes.result_list if row.team_id})
        for row in changes.result_list:
            row.team_name = names.get(row.team_id, "")
        return changes

    def get_ordering(self, request: HttpRequest) -> tuple[str, ...]:
        """Put what waits first, by time left."""
        return ("rank", "due", "-decided_at", "-created_at")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuse every posted action of somebody who may only look, and keep the try."""
        if request.method == "POST" and not self.has_decide_permission(request):
            chosen = request.POST.getlist("_selected_action")[:BULK_MOST]
            for review in self._found(request, chosen):
                self._keep_try(request, review, ACTIONS.get(request.POST.get("action", "")))
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    @admin.action(permissions=["decide"], description=gettext_lazy("Approve the chosen reviews"))
    def approve_chosen(
        self, request: HttpRequest, queryset: QuerySet[Review]
    ) -> HttpResponse | None:
        """Show what would be approved, then approve each."""
        items = self._items(request, queryset)
        try:
            if "confirmed" not in request.POST:
                rules_same_or_refuse(pk for pk, _version in items)
                return self._summary(request, queryset, "approve_chosen")
            results = reviews_approve(items=items, actor=actor_of(request), channel=Channel.ADMIN)
        except ReviewRefused as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
            return None
        self._report(request, results, Decision.APPROVE)
        return None

    @admin.action(permissions=["decide"], description=gettext_lazy("Reject the chosen reviews"))
    def reject_chosen(
        self, request: HttpRequest, queryset: QuerySet[Review]
    ) -> HttpResponse | None:
        """Ask for the sentence, then reject each."""
        sentence = request.POST.get("sentence", "")
        if "confirmed" not in request.POST or not sentence.strip():
            missing = "confirmed" in request.POST
            return self._summary(request, queryset, "reject_chosen", sentence_missing=missing)
        results = reviews_reject(
            items=self._items(request, queryset),
            actor=actor_of(request),
            channel=Channel.ADMIN,
            sentence=sentence,
        )
        self._report(request, results, Decision.REJECT)
        return None

    def _items(self, request: HttpRequest, queryset: QuerySet[Review]) -> list[tuple[UUID, int]]:
        """Pair each review with the version that the summary showed."""
        return [
            (review.pk, version_seen(request.POST.get(f"version_{review.pk}", "")))
            for review in queryset[:BULK_MOST]
        ]

    def _summary(
        self,
        request: HttpRequest,
        queryset: QuerySet[Review],
        action: str,
        *,
        sentence_missing: bool = False,
    ) -> HttpResponse:
        chosen = list(queryset[:BULK_MOST])
        context = {
            **self.admin_site.each_context(request),
            "title": _("Approve these?") if action == "approve_chosen" else _("Reject these?"),
            "opts": self.opts,
            "rows": [
                {
                    "review": review,
                    "title": shown_to_reader(review, review.title),
                    "requester": words.person_name(review.requested_by),
                }
                for review in chosen
            ],
            "totals": totals_of(chosen),
            "action": action,
            "rejects": action == "reject_chosen",
            "sentence_missing": sentence_missing,
        }
        return TemplateResponse(request, "admin/reviews/review/summary.html", context)

    def _report(self, request: HttpRequest, results: list[Result], decision: Decision) -> None:
        """Count what passed and what did not, and say why for each."""
        passed = sum(result.accepted for result in results)
        total = len(results)
        facts = {"passed": passed, "total": total}
        if decision is Decision.APPROVE:
            text = ngettext(
                "%(passed)d of %(total)d approved.", "%(passed)d of %(total)d approved.", total
            )
        else:
            text = ngettext(
                "%(passed)d of %(total)d rejected.", "%(passed)d of %(total)d rejected.", total
            )
        level = messages.SUCCESS if passed == total else messages.WARNING
        self.message_user(request, text % facts, level)
        for result in results:
            kind = messages.INFO if result.accepted else messages.WARNING
            self.message_user(request, f"{result.title}: {result.text}", kind)

    # One review

    def get_urls(self) -> list[URLPattern]:
        """Add the route of a decision before Django's catch-all."""
        decide = self.admin_site.admin_view(require_POST(self.decide_view))
        route = path(
            "<uuid:review_id>/decide/<str:decision>/", decide, name="reviews_review_decide"
        )
        return [route, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the card and the decisions that this person may take; the opening is logged."""
        found = self._found(request, [object_id])
        if request.method == "POST" or not self.has_view_permission(request):
            for review in found:
                self._keep_try(request, review, None)
            raise PermissionDenied
        if not found:
            self._log(request, "scope.denied", object_id)
            review_denied(review_id=object_id, actor=actor_of(request))
            raise Http404
        self._log(request, "review.opened", object_id)
        reads = reads_conversation(actor_of(request), found[0])
        review_viewed(review=found[0], actor=actor_of(request), conversation=reads)
        return self._page(request, found[0])

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuse, and keep the try."""
        self._log(request, "review.delete_refused", object_id)
        for review in self._found(request, [object_id]):
            review_touch_refused(review=review, actor=actor_of(request), tried="delete")
        raise PermissionDenied

    def decide_view(self, request: HttpRequest, review_id: UUID, decision: str) -> HttpResponse:
        """Take one decision; a refusal comes back with what was typed."""
        found = self._found(request, [str(review_id)])
        if decision not in Decision.values or not found:
            self._log(request, "scope.denied", str(review_id))
            review_denied(review_id=review_id, actor=actor_of(request))
            raise Http404
        if not self.has_decide_permission(request):
            self._keep_try(request, found[0], Decision(decision))
            raise PermissionDenied
        submission = submission_read(found[0], Decision(decision), request.POST)
        try:
            review = submission.decide(actor_of(request))
        except NotFound as refusal:
            raise Http404 from refusal
        except (AlreadyDecided, Expired) as refusal:
            # Somebody was faster: that is news, not a mistake.
            self.message_user(request, str(refusal), messages.INFO)
            return self._back(review_id)
        except ReviewRefused as refusal:
            submission.error_add(refusal)
            forbidden = isinstance(refusal, FourEyes | NoRight)
            return self._page(request, found[0], submission, 403 if forbidden else 422)
        if review is None:
            return self._page(request, found[0], submission, 422)
        self.log_change(request, review, words.state_sentence(review))
        self.message_user(request, words.state_sentence(review), messages.SUCCESS)
        return self._back(review_id)

    def _back(self, review_id: UUID) -> HttpResponse:
        return HttpResponseRedirect(reverse("admin:reviews_review_change", args=[review_id]))

    def _page(
        self,
        request: HttpRequest,
        stored: Review,
        submission: Submission | None = None,
        status: int = 200,
    ) -> HttpResponse:
        review = self.get_queryset(request).get(pk=stored.pk)
        offered, refusal = choices_for(actor_of(request), review)
        may_decide = self.has_decide_permission(request)
        reads = reads_conversation(actor_of(request), review)
        shown = page_context(actor_of(request), review, conversation=reads)
        context = {
            **self.admin_site.each_context(request),
            **shown,
            "title": shown["heading"],
            "opts": self.opts,
            "forms": forms_for(review, offered, submission) if may_decide else [],
            "refusal": refusal,
            "error": submission.error if submission else "",
        }
        page = "admin/reviews/review/review.html"
        return TemplateResponse(request, page, context, status=status)

    def _found(self, request: HttpRequest, ids: Sequence[str]) -> list[Review]:
        """Return those of the reviews that this person may look at; odd ids are no reviews."""
        known = []
        for text in ids:
            try:
                known.append(UUID(text))
            except ValueError:
                continue
        return list(self.get_queryset(request).filter(pk__in=known))

    def _keep_try(self, request: HttpRequest, review: Review, decision: Decision | None) -> None:
        self._log(request, "review.admin_refused", str(review.pk))
        if decision is None:
            review_touch_refused(review=review, actor=actor_of(request), tried="change")
        else:
            review_try_refused(
                review_id=review.pk,
                actor=actor_of(request),
                channel=Channel.ADMIN,
                decision=decision,
            )

    def _log(self, request: HttpRequest, event: str, review_id: str) -> None:
        log.info(event, extra={"review": review_id[:40], "actor": request.user.pk})
