"""Reviews in Django's admin: a list, a page with the card, decisions through the services only.

Nothing is added, edited or deleted here. Who may only look gets no button, and a refusal on every
route; the try is kept.
"""

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from reviews import words
from reviews.admin_deciding import Submission, forms_for, submission_read
from reviews.admin_rights import LookOnlyAdmin, actor_of
from reviews.errors import AlreadyDecided, Expired, FourEyes, NoRight, NotFound, ReviewRefused
from reviews.forms import version_seen
from reviews.models import Review
from reviews.selectors import choices_for, reviews_visible
from reviews.services import review_try_refused
from reviews.services_bulk import BULK_MOST, Result, reviews_approve, reviews_reject
from reviews.services_viewing import review_denied, review_touch_refused, review_viewed
from reviews.states import Channel, Decision
from reviews.subjects import review_now

log = logging.getLogger("reviews")

ACTIONS = {"approve_chosen": Decision.APPROVE, "reject_chosen": Decision.REJECT}


@admin.register(Review)
class ReviewAdmin(LookOnlyAdmin):
    """The reviews of a person's teams, to look at or to decide."""

    list_display = ("state", "title", "requester", "time_left", "decided")
    list_display_links = ("title",)
    list_filter = ("state", "kind", ("requested_by", admin.RelatedOnlyFieldListFilter))
    search_fields = ("title", "requested_by__username")
    list_per_page = 50
    actions = ("approve_chosen", "reject_chosen")

    @admin.display(description=gettext_lazy("asked by"), ordering="requested_by__username")
    def requester(self, review: Review) -> str:
        """Name who asked."""
        return words.person_name(review.requested_by)

    @admin.display(description=gettext_lazy("time left"), ordering="expires_at")
    def time_left(self, review: Review) -> str:
        """Say how long the review still waits."""
        return words.time_left(review)

    @admin.display(description=gettext_lazy("decision"), ordering="decided_at")
    def decided(self, review: Review) -> str:
        """Say who decided, and when."""
        return words.state_sentence(review)

    # The list

    def get_queryset(self, request: HttpRequest) -> QuerySet[Review]:
        """Leave out what this person may not look at, so that it is not found."""
        return reviews_visible(actor_of(request))

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
        if "confirmed" not in request.POST:
            return self._summary(request, queryset, "approve_chosen")
        items = self._items(request, queryset)
        results = reviews_approve(items=items, actor=actor_of(request), channel=Channel.ADMIN)
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
        context = {
            **self.admin_site.each_context(request),
            "title": _("Approve these?") if action == "approve_chosen" else _("Reject these?"),
            "opts": self.opts,
            "reviews": queryset[:BULK_MOST],
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
        review_viewed(review=found[0], actor=actor_of(request), conversation=False)
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
        shown: Review,
        submission: Submission | None = None,
        status: int = 200,
    ) -> HttpResponse:
        review = self.get_queryset(request).get(pk=shown.pk)
        offered, refusal = choices_for(actor_of(request), review)
        may_decide = self.has_decide_permission(request)
        context = {
            **self.admin_site.each_context(request),
            "title": review.title,
            "opts": self.opts,
            "review": review_now(review),
            "standing": words.state_sentence(review),
            "time_left": words.time_left(review),
            "requester": words.person_name(review.requested_by),
            "raised_by": words.person_name(review.editor) if review.editor else "",
            "tries": review.decisions.select_related("actor"),
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
