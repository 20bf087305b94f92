"""What the operators' page shows: queues and workers, runs that work, stand still or lie aside.

Every team's work is here, so what was said in it is not: identifiers, states, times and names only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core.runs import operating
from agent_core.runs.models import Run
from agent_core.runs.services_start import OPERATE
from desk.showing import took
from exports.models import Export
from exports.selectors import exports_stuck
from payments.balances import refunds_pause
from payments.models import Breaker, Intent, Pause
from payments.money import Money, money_format
from payments.processor.models import Reconciliation
from payments.processor.selectors import reconciliation_latest
from payments.processor.states import Result
from payments.processor.wording import finding_sentence, total_sentence
from payments.selectors import breakers_tripped, intents_checked, pauses
from payments.services_pause import PAUSE_REFUNDS
from reviews.words import person_name

PAUSES_SHOWN: Final = 5

QUEUES: Final[Mapping[str, Any]] = {
    "turns": gettext_lazy("requests of staff"),
    "quarantine": gettext_lazy("requests whose worker has died, each in a process of its own"),
    "exports": gettext_lazy("exports"),
    "maintenance": gettext_lazy("sweeps and settling"),
}

CAUSES: Final[Mapping[str, Any]] = {
    operating.NOT_TAKEN: gettext_lazy("no worker has taken it"),
    operating.LEASE_OVER: gettext_lazy("its worker is silent and its lease is over"),
    operating.NOT_WOKEN: gettext_lazy("everything is decided and it still waits"),
    operating.BEHIND_NOTHING: gettext_lazy("in line behind nothing"),
}


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue: what it is for, how much lies in it, and who works on it."""

    name: str
    what: str
    length: int | None
    workers: list["Seen"]

    @property
    def lives(self) -> bool:
        """Tell whether anybody works on it."""
        return any(worker.fresh for worker in self.workers)


@dataclass(frozen=True, slots=True)
class Seen:
    """One worker and its last sign of life."""

    node: str
    ago: str
    fresh: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One run, export or effect, as a row; what does not apply stays empty."""

    id: UUID
    state: str = ""
    who: str = ""
    age: str = ""
    worker: str = ""
    attempt: int = 0
    left: str = ""
    strikes: int = 0
    cause: str = ""
    reference: str = ""
    amount: str = ""
    tries: int = 0
    run: UUID | None = None


@dataclass(frozen=True, slots=True)
class Books:
    """The latest comparison of our books with the processor's, told in sentences."""

    row: Reconciliation
    alarming: bool
    totals: list[str]
    findings: list[str]
    more: int


@dataclass(frozen=True, slots=True)
class OperatorPage:
    """Everything on the page, read at one moment."""

    now: datetime
    redis: bool
    queues: list[Queue]
    working: list[Line]
    stuck: list[Line]
    quarantined: list[Line]
    parked: list[Line]
    checked: list[Line]
    breakers: list[Breaker]
    books: Books | None
    exports: list[Line]
    pause: Pause | None
    pauses: list[Pause]
    may_pause: bool


def operates(user: User) -> bool:
    """Tell whether this person operates the product."""
    return user.is_active and user.has_perm(OPERATE)


def operator_page(viewer: User) -> OperatorPage:
    """Return how everything stands now."""
    now = timezone.now()
    seen = import_string(settings.WORK_OVERVIEW)()
    return OperatorPage(
        now=now,
        redis=seen["redis"],
        queues=[_queue(name, seen) for name in QUEUES],
        working=[_working(run, now) for run in operating.runs_working()],
        stuck=[_stuck(one, now) for one in operating.runs_stuck()],
        quarantined=[_line(run, run.created_at, now) for run in operating.runs_quarantined()],
        parked=[_line(run, run.ended_at, now) for run in operating.runs_parked()],
        breakers=list(breakers_tripped()),
        books=_books(),
        checked=[_intent(intent, now) for intent in _first(intents_checked())],
        exports=[_export(one, now) for one in _first(exports_stuck(now - operating.STUCK_AFTER))],
        pause=refunds_pause(),
        pauses=list(pauses()[:PAUSES_SHOWN]),
        may_pause=viewer.has_perm(PAUSE_REFUNDS),
    )


def _books() -> Books | None:
    row = reconciliation_latest()
    if row is None:
        return None
    undone = [one for one in row.findings if not one["repaired"]]
    return Books(
        row=row,
        alarming=row.result in {Result.LOOK, Result.SILENT},
        totals=[total_sentence(total) for total in row.totals],
        findings=[finding_sentence(one) for one in undone[: operating.SHOWN]],
        more=max(row.open_findings - min(len(undone), operating.SHOWN), 0),
    )


def _first(rows: Any) -> Iterable[Any]:
    found: Iterable[Any] = rows[: operating.SHOWN]
    return found


def _queue(name: str, seen: Mapping[str, Any]) -> Queue:
    workers = [
        Seen(node, _("%(seconds)d s ago") % {"seconds": age}, fresh)
        for node, (age, fresh) in sorted(seen["workers"].items())
        if node.partition("@")[0] == name
    ]
    return Queue(name, str(QUEUES[name]), seen["queues"].get(name), workers)


def _line(run: Run, since: datetime | None, now: datetime, **more: Any) -> Line:
    return Line(
        id=run.pk,
        state=str(run.get_state_display()),
        who=person_name(run.requester),
        age=took(since, now),
        worker=run.worker,
        attempt=run.attempt,
        strikes=run.strikes,
        reference=run.failure_reference,
        **more,
    )


def _working(run: Run, now: datetime) -> Line:
    return _line(run, run.claimed_at, now, left=took(now, run.lease_until))


def _stuck(one: operating.Stuck, now: datetime) -> Line:
    return _line(one.run, one.since, now, cause=str(CAUSES[one.why]))


def _intent(intent: Intent, now: datetime) -> Line:
    return Line(
        id=intent.pk,
        state=str(intent.get_operation_display()),
        age=took(intent.unknown_at, now),
        left=took(now, intent.next_try_at),
        amount=money_format(Money(intent.amount_minor, intent.currency)),
        tries=intent.tries,
        run=intent.run_id,
    )


def _export(export: Export, now: datetime) -> Line:
    return Line(
        id=export.pk,
        state=str(export.get_state_display()),
        who=person_name(export.owner),
        age=took(export.created_at, now),
        attempt=export.attempt,
        reference=export.reference,
    )
