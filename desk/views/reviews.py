"""The reviewer's desk: what waits, by time left, and one review with all that a decision needs."""

from typing import Any, Final
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agent_core.runs.models import Message
from agent_core.runs.wording import refusal
from desk.amounts import field_shown
from desk.reach import review_or_404
from desk.reviewing import Refused, card_of, open_for
from desk.settlement import settlement_of
from desk.views.people import person
from desk.words import REJECT_SENTENCES
from reviews import words
from reviews.changes import CHANGEABLE
from reviews.models import Review
from reviews.selectors import choices_for, reviews_visible
from reviews.services_viewing import review_viewed
from reviews.states import Decision, State

SHOWN: Final = 50


@never_cache
@login_required
@require_safe
def inbox(request: HttpRequest) -> HttpResponse:
    """List what waits for this person by time left, what waits for others, what is decided."""
    viewer = person(request)
    mine = open_for(viewer)
    visible = reviews_visible(viewer)
    waiting = visible.filter(state=State.PENDING, expires_at__gt=timezone.now())
    others = waiting.exclude(pk__in=[review.pk for review in mine])
    decided = visible.exclude(state=State.PENDING)
    may_decide = viewer.has_perm("reviews.decide_review")
    return render(
        request,
        "desk/reviews.html",
        {
            "section": "reviews",
            "mine": [_row(review, viewer, may_decide) for review in mine],
            "others": [_row(review, viewer, may_decide) for review in others[:SHOWN]],
            "decided": [_row(review, viewer, may_decide) for review in decided[:SHOWN]],
            "may_decide": may_decide,
            "may_view": may_decide or viewer.has_perm("reviews.view_review"),
        },
    )


def _row(review: Review, viewer: User, may_decide: bool) -> dict[str, Any]:
    return {
        "review": review,
        "card": card_of(review, viewer),
        "who": words.person_name(review.requested_by),
        "outcome": words.state_sentence(review),
        "opens": may_decide or review.requested_by_id == viewer.pk,
    }


@never_cache
@login_required
@require_safe
def review(request: HttpRequest, review_id: UUID) -> HttpResponse:
    """Show one review; a reviewer who may decide reads the conversation with it."""
    viewer = person(request)
    found = review_or_404(viewer, review_id)
    review_viewed(review=found, actor=viewer, conversation=_reads(viewer))
    return review_page(request, found)


def review_page(
    request: HttpRequest, found: Review, refused: Refused | None = None
) -> HttpResponse:
    """Return the page of a review; after a refused try with its sentence and what was typed."""
    context = _context(found, person(request), refused)
    context["lines"] = _lines(found, person(request))
    return render(request, "desk/review.html", context, status=422 if refused else 200)


@never_cache
@login_required
@require_safe
def card(request: HttpRequest, review_id: UUID) -> HttpResponse:
    """Show the card alone, for a page that looks whether somebody else has decided."""
    found = review_or_404(person(request), review_id)
    return render(request, "desk/_decide.html", _context(found, person(request)))


def _context(found: Review, viewer: User, refused: Refused | None = None) -> dict[str, Any]:
    offered, why_not = choices_for(viewer, found)
    refused = refused or Refused("", "", "", {})
    names = {decision.name.lower(): decision in offered for decision in Decision}
    settled = settlement_of(found)
    return {
        "section": "reviews",
        "review": found,
        "card": card_of(found, viewer, fresh=True),
        "who": words.person_name(found.requested_by),
        "editor": words.person_name(found.editor) if found.editor else "",
        "outcome": words.state_sentence(found),
        "offered": names,
        "why_not": why_not,
        **_forms(found, refused),
        "sentences": [str(sentence) for sentence in REJECT_SENTENCES],
        "told": _told(found, viewer),
        "settled": settled,
        "own": found.requested_by_id == viewer.pk,
        "mark": f"{found.state}-{found.version}-{settled.state if settled else ''}",
    }


def _forms(found: Review, refused: Refused) -> dict[str, Any]:
    """Return what the forms hold: what stands there, or what was typed before it was refused."""
    change = refused.typed_in(Decision.CHANGE, Decision.RAISE)
    reject = refused.typed_in(Decision.REJECT)
    fields = {name: str(text) for name, text in found.fields.items() if name in CHANGEABLE}
    shown = {*fields, "note"} if change else {"sentence", "note"} if reject else set()
    field = refused.field if refused.field in shown else ""
    return {
        "fields": [
            {"name": name, "value": change.get(name, field_shown(name, text, found.currency))}
            for name, text in fields.items()
        ],
        "changes": [
            (name, field_shown(name, str(text), found.currency))
            for name, text in found.changes.items()
        ],
        "change": change,
        "reject": reject,
        "wrong": field,
        "wrong_words": refused.sentence,
    }


def _told(found: Review, viewer: User) -> str:
    """Return what the chat will be told on a rejection, up to the reviewer's own sentence."""
    who = words.person_name(viewer)
    return refusal(state=State.REJECTED, title=found.title, who=who, sentence="")


def _reads(viewer: User) -> bool:
    return viewer.has_perm("reviews.decide_review")


def _lines(found: Review, viewer: User) -> list[Message]:
    """Return the conversation for reading, to whoever may decide and has not asked."""
    if not _reads(viewer):
        return []
    lines = Message.objects.filter(conversation_id=found.conversation_id, removed_at=None)
    return list(lines.order_by("position"))
