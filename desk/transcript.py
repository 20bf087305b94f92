"""The transcript as the page shows it: messages, and between them what the assistant did.

Reads rows once for the whole page (a constant number of queries) or for one fragment; the same
parts make both, so that a reload and a live page cannot differ.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent_core.runs.models import Call, Conversation, Message, Run
from agent_core.runs.services import MESSAGE_LIMIT
from agent_core.runs.states import RUN_FINAL, RUN_WORKING, CallState, Role, RunState, run_untouched
from agent_core.runs.wording import explain
from desk.reviewing import Card, card_of
from desk.showing import (
    BUSY,
    CALL_LOOKS,
    RUN_LINES,
    Fact,
    argument_facts,
    bytes_in_words,
    done_words,
    took,
)
from exports.models import Export
from exports.progress import progress_percent
from exports.selectors import exports_of_conversation
from exports.states import EXPORT_ACTIVE, ExportState
from exports.words import export_sentence, export_title
from reviews.models import Review
from reviews.selectors import reviews_of_conversation

TURNS_SHOWN: Final = 50
"""Turns on one page of a conversation; what was said earlier stands on pages of its own."""


@dataclass(frozen=True, slots=True)
class CallLine:
    """One tool call in plain words."""

    id: UUID
    run_id: UUID
    order: int
    label: str
    state: str
    tone: str
    icon: str
    took: str
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ended, in words."""

    cause: str
    rule_words: str
    calls: str
    notes: Sequence[str]
    done: Sequence[str]
    not_done: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExportCard:
    """One export with how far it is."""

    id: UUID
    run_id: UUID | None
    code: str
    title: str
    state: str
    tone: str
    icon: str
    busy: bool
    total: int | None
    done: int
    percent: int
    rows: str
    note: str
    reference: str
    size: str
    ready: bool


@dataclass(frozen=True, slots=True)
class Work:
    """What one run does between question and answer."""

    run: Run
    line: str
    icon: str
    busy: bool
    since: datetime
    can_cancel: bool
    can_change: bool
    can_retry: bool
    no_answer: bool
    stop: Stop | None
    calls: list[CallLine] = field(default_factory=list)
    reviews: list[Card] = field(default_factory=list)
    exports: list[ExportCard] = field(default_factory=list)
    longest: int = MESSAGE_LIMIT


@dataclass(frozen=True, slots=True)
class Entry:
    """One place of the transcript: a message, or the work of a run."""

    message: Message | None = None
    answers: str = ""
    stop_of: Run | None = None
    stop: Stop | None = None
    work: Work | None = None


def transcript_of(
    conversation: Conversation, viewer: User, *, first: int = 0, before: int | None = None
) -> list[Entry]:
    """Return the transcript in the order in which things happened, from one position to another.

    What is still open stands on the page without `before`, however long ago it was asked.
    """
    shown = Q(position__gte=first)
    if before is None:
        shown |= Q(pk__in=conversation.runs.exclude(state__in=RUN_FINAL).values("message"))
    else:
        shown &= Q(position__lt=before)
    messages = list(conversation.messages.filter(shown).order_by("position"))
    runs = list(_runs(conversation).filter(_concerned(messages)))
    run_ids = [run.pk for run in runs]
    answered = _last_answers(messages)
    reviews: dict[UUID, list[Review]] = defaultdict(list)
    for review in reviews_of_conversation(conversation.pk).filter(run_id__in=run_ids):
        reviews[review.run_id].append(review)
    exports: dict[UUID | None, list[Export]] = defaultdict(list)
    for export in exports_of_conversation(conversation.pk).filter(run_id__in=run_ids):
        exports[export.run_id].append(export)
    placed: list[tuple[datetime, int, Entry]] = []
    asked = {message.pk for message in messages}
    for run in runs:
        # Of a run that was asked earlier only the late answer stands here.
        if run.message_id in asked:
            work = _work(run, viewer, reviews[run.pk], exports[run.pk], run.pk not in answered)
            placed.append((max(run.created_at, run.message.created_at), 1, Entry(work=work)))
    by_id = {run.pk: run for run in runs}
    question: UUID | None = None
    for message in messages:
        run_of = by_id.get(message.run_id) if message.run_id else None
        placed.append((message.created_at, 0, _entry(message, run_of, answered, question)))
        question = message.pk if message.role == Role.STAFF else question
    return [entry for _at, _rank, entry in sorted(placed, key=lambda place: place[:2])]


def _concerned(messages: Sequence[Message]) -> Q:
    """Select the runs that these messages have asked for or answered."""
    return Q(message__in=[message.pk for message in messages]) | Q(
        pk__in=[message.run_id for message in messages if message.run_id]
    )


def first_shown(conversation: Conversation, before: int | None) -> int:
    """Return the position at which a page begins; 0 when it shows all there is before its end."""
    asked = conversation.messages.filter(role=Role.STAFF)
    if before is not None:
        asked = asked.filter(position__lt=before)
    latest = list(asked.order_by("-position").values_list("position", flat=True)[: TURNS_SHOWN + 1])
    return latest[TURNS_SHOWN - 1] if len(latest) > TURNS_SHOWN else 0


def message_entries(conversation: Conversation, message: Message, viewer: User) -> list[Entry]:
    """Return a message for the live page, and for a question the work that begins with it."""
    asked = message.run_id
    answered = _last_answers(conversation.messages.filter(run_id=asked) if asked else ())
    before = conversation.messages.filter(role=Role.STAFF, position__lt=message.position)
    question = before.order_by("-position").values_list("pk", flat=True).first()
    run = _runs(conversation).filter(pk=message.run_id).first() if message.run_id else None
    entries = [_entry(message, run, answered, question)]
    if message.role == Role.STAFF:
        runs = _runs(conversation).filter(message=message)
        entries += [Entry(work=work_of(conversation, run, viewer)) for run in runs]
    return entries


def work_of(conversation: Conversation, run: Run, viewer: User) -> Work:
    """Return the work of one run."""
    reviews = list(reviews_of_conversation(conversation.pk).filter(run_id=run.pk))
    exports = exports_of_conversation(conversation.pk).filter(run_id=run.pk)
    answered = run.answers.filter(role=Role.ASSISTANT).exists()
    return _work(run, viewer, reviews, exports, not answered)


def run_of(conversation: Conversation, run_id: UUID) -> Run | None:
    """Return a run of this conversation with what a fragment shows of it."""
    return _runs(conversation).filter(pk=run_id).first()


def call_line(call: Call) -> CallLine:
    """Return one call in plain words."""
    look = CALL_LOOKS[call.state]
    done = call.state == CallState.DONE
    facts = argument_facts(call.arguments)
    if call.content:
        facts.append(Fact(_("What came of it"), call.content))
    return CallLine(
        id=call.pk,
        run_id=call.run_id,
        order=call.batch * 1000 + call.position + 1,
        label=_(done_words().get(call.tool, call.label)) if done else call.label,
        state=str(CallState(call.state).label),
        tone=look.tone,
        icon=look.icon,
        took=took(call.started_at, call.ended_at),
        facts=facts,
    )


def export_card(export: Export) -> ExportCard:
    """Return one export with how far it is, from its row alone."""
    busy = export.state in EXPORT_ACTIVE
    ready = export.state == ExportState.READY
    percent = progress_percent(export.rows_done, export.rows_total, ready=ready)
    tone, icon = {
        ExportState.READY: ("good", "check"),
        ExportState.FAILED: ("bad", "cross"),
    }.get(ExportState(export.state), ("info", "file") if busy else ("quiet", "stop"))
    return ExportCard(
        id=export.pk,
        run_id=export.run_id,
        code=export.state,
        title=export_title(export),
        state=str(ExportState(export.state).label),
        tone=tone,
        icon=icon,
        busy=busy,
        total=export.rows_total,
        done=export.rows_done,
        percent=percent,
        rows=_rows(export, percent, busy),
        note=export_sentence(export),
        reference=export.reference,
        size=bytes_in_words(export.bytes),
        ready=ready,
    )


def stop_of(run: Run) -> Stop | None:
    """Return why the run ended, in words; None while it has not."""
    record = getattr(run, "stop", None)
    if record is None:
        return None
    words: dict[str, Any] = dict(explain(record))
    return Stop(
        cause=words["cause"],
        rule_words=words["rule_words"],
        calls=words["calls"],
        notes=words["notes"],
        done=words["done"],
        not_done=words["not_done"],
    )


def _runs(conversation: Conversation) -> QuerySet[Run]:
    return (
        conversation.runs.select_related("message", "stop", "continued_by")
        .prefetch_related("calls")
        .order_by("created_at")
    )


def _last_answers(messages: Iterable[Message]) -> dict[UUID, UUID]:
    """Return for each run its last answer, under which it says why it stopped."""
    return {
        message.run_id: message.pk
        for message in messages
        if message.role == Role.ASSISTANT and message.run_id
    }


def _entry(
    message: Message, run: Run | None, answered: dict[UUID, UUID], question: UUID | None
) -> Entry:
    last = run is not None and answered.get(run.pk) == message.pk
    # An answer that comes after a later question says which one it belongs to.
    late = message.role == Role.ASSISTANT and run is not None and run.message_id != question
    return Entry(
        message=message,
        answers=run.message.text if late and run else "",
        stop_of=run if last else None,
        stop=stop_of(run) if last and run else None,
    )


def _work(
    run: Run,
    viewer: User,
    reviews: Iterable[Review],
    exports: Iterable[Export],
    no_answer: bool,
) -> Work:
    final = run.state in RUN_FINAL
    removed = run.message.removed_at is not None
    asked_to_stop = run.cancel_requested_at is not None and not final
    can_change = run.continues_id is None and run_untouched(run.state, run.attempt)
    doing = [call.label for call in run.calls.all() if call.state == CallState.RUNNING]
    line = str(RUN_LINES.get(run.state, ""))
    if run.state == RunState.RUNNING and doing:
        line = f"{doing[-1]}…"
    if asked_to_stop:
        line = _("Stopping…")
    return Work(
        run=run,
        line=line,
        icon="clock",
        busy=run.state in BUSY or asked_to_stop,
        since=run.claimed_at or run.created_at,
        # What only waits is taken back, not stopped.
        can_cancel=not final
        and not asked_to_stop
        and (run.state in RUN_WORKING or (run.state == RunState.PENDING and not can_change)),
        can_change=can_change,
        can_retry=run.state in (RunState.FAILED, RunState.CANCELLED)
        and not removed
        and getattr(run, "continued_by", None) is None,
        no_answer=no_answer,
        stop=stop_of(run) if no_answer else None,
        calls=[call_line(call) for call in run.calls.all()],
        reviews=[card_of(review, viewer, fresh=True) for review in reviews],
        exports=[export_card(export) for export in exports],
    )


def _rows(export: Export, percent: int, busy: bool) -> str:
    if export.rows_total is None:
        return "" if busy else _("%(done)d rows") % {"done": export.rows_done}
    if not busy:
        return ngettext("%(total)d row", "%(total)d rows", export.rows_total) % {
            "total": export.rows_total
        }
    return _("%(done)d of %(total)d rows, %(percent)d %%") % {
        "done": export.rows_done,
        "total": export.rows_total,
        "percent": percent,
    }
