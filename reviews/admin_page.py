"""What the page of one review shows: the card of now, the words asked, the chat, how it went."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from reviews import words
from reviews.audit.models import Entry
from reviews.ledger import (
    amount_of,
    conversation_lines,
    ledger,
    progress_of,
    shown_to_reader,
    words_asked,
)
from reviews.models import Review
from reviews.quoting import Part, parts_of
from reviews.selectors import reader_of
from reviews.states import State
from reviews.subjects import review_now

AUDIT_SHOWN: Final = 100
SEES_AUDIT: Final = "audit.view_entry"
SEES_RUNS: Final = ("runs.view_run", "runs.view_all_runs")


@dataclass(frozen=True, slots=True)
class Step:
    """One step on a review's way: what happened, when, and how it stands."""

    name: str
    words: str
    tone: str
    at: datetime | None = None


def reads_conversation(user: User, review: Review) -> bool:
    """Tell whether this person decides on reviews like this one, and so may read what was said."""
    reader = reader_of(user)
    return reader.may_decide and reader.covers(review)


def page_context(user: User, review: Review, *, conversation: bool) -> dict[str, Any]:
    """Return what the page shows of a review to this person."""
    now = review_now(review)
    return {
        "review": now,
        "heading": shown_to_reader(review, review.title),
        "amount": amount_of(review),
        "rule": ledger().rule_name(review.rule) if review.rule else "",
        "run_link": _run_link(user, review),
        "record": ledger().record(user, review),
        "standing": words.state_sentence(review),
        "time_left": words.time_left(review),
        "age": words.age(review),
        "team": _team(review),
        "requester": words.person_name(review.requested_by),
        "raised_by": words.person_name(review.editor) if review.editor else "",
        "asked": _asked(review) if conversation else [],
        "conversation": conversation,
        "lines": conversation_lines(review) if conversation else [],
        "steps": steps_of(review),
        "tries": review.decisions.select_related("actor"),
        "entries": entries_of(review)[:AUDIT_SHOWN] if user.has_perm(SEES_AUDIT) else None,
    }


def steps_of(review: Review) -> list[Step]:
    """Return the way of a review so far: asked, decided, carried out."""
    asked = _("%(who)s asked for this, through the assistant.")
    who = words.person_name(review.requested_by)
    steps = [Step(_("Asked"), asked % {"who": who}, "good", review.created_at)]
    if review.state == State.PENDING:
        return [*steps, Step(_("Decision"), words.state_sentence(review), "warn")]
    tone = "good" if review.state == State.APPROVED else "bad"
    decided = words.state_sentence(review)
    steps.append(Step(str(State(review.state).label), decided, tone, review.decided_at))
    progress = progress_of(review)
    if progress is not None:
        done = " ".join(filter(None, (progress.words, progress.reference)))
        steps.append(Step(_("Carried out"), done, progress.tone))
    return steps


def entries_of(review: Review) -> QuerySet[Entry]:
    """List the audit of a review and of the call that it allowed, oldest first."""
    about = Q(subject_kind="review", subject_id=str(review.pk)) | Q(call_id=review.call_id)
    return Entry.objects.filter(about).order_by("id")


def _asked(review: Review) -> list[Part]:
    return parts_of(words_asked(review))


def _team(review: Review) -> str:
    if review.team_id is None:
        return ""
    return ledger().teams([review.team_id]).get(review.team_id, "")


def _run_link(user: User, review: Review) -> str:
    """Return where the run stands in the administration, to whoever may look there."""
    if not any(user.has_perm(right) for right in SEES_RUNS):
        return ""
    return reverse("admin:runs_run_change", args=[review.run_id])
