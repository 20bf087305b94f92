"""Compare our books with the processor's for a period, put right what is safe, and say the rest.

Day by day, a page of each side at a time, so that a year takes no more memory than its largest
day. Repairs go through `observed` alone; after each one the line is compared again, so that what is
called repaired is equal.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from itertools import chain, islice
from typing import Any, Final, TypeVar

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from agent_core import faults
from agent_core.errors import CountersignError
from payments.errors import ProcessorSilent
from payments.gateways.base import Gateway, Seen, SeenKind, gateway_named
from payments.models import Payment
from payments.processor import ours as books
from payments.processor.comparing import (
    Finding,
    differs,
    finding_of,
    is_young,
    only_ours,
    only_theirs,
)
from payments.processor.models import Reconciliation
from payments.processor.ours import WAITING, Ours
from payments.processor.states import REPAIRABLE, Difference, Result
from payments.services_observed import observed

log = logging.getLogger(__name__)

SOURCE: Final = "processor.reconcile"
KINDS: Final[tuple[SeenKind, ...]] = ("payment", "refund", "dispute")
DAY: Final = timedelta(days=1)
# Their clock and ours, and the time from a try to its row, are no more apart than this.
SLACK: Final = timedelta(hours=1)
PAGE: Final = 100
MOST_KEPT: Final = 500
"""Findings that a row keeps; all of them are counted, and the command prints all."""

MOST_DAYS: Final = 31
"""How far back the daily comparison makes up for days on which there was none."""
MOST_QUIET: Final = 3

# A comparison that began so long ago and never ended has died.
DEAD_AFTER: Final = timedelta(hours=6)
_MOVED: Final = frozenset({"succeeded", "accepted"})

ItemT = TypeVar("ItemT")
Tell = Callable[[Finding], object]


def days_back(now: datetime, days: int = 2) -> tuple[datetime, datetime]:
    """Return the last whole days before this moment, in the desk's time zone."""
    today = timezone.localtime(now).date()
    midnight = timezone.make_aware(datetime.combine(today, time.min))
    first = timezone.make_aware(datetime.combine(today - timedelta(days=days), time.min))
    return first, midnight


def reconcile(
    *, since: datetime, until: datetime, apply: bool, tell: Tell = lambda _finding: None
) -> Reconciliation:
    """Compare a period, with repairs when `apply` says so; `tell` hears each finding as it comes.

    The result is `silent` when the processor did not let itself be read to the end.
    """
    row = _begun(since, until, apply, daily=False)
    return _compared(row, tell)


def reconcile_daily() -> Reconciliation | None:
    """Compare the last whole days once a day; None when that is done or being done.

    At least two days, and with them what no earlier day has compared. What is older and may still
    change is asked for by its name. One that could not be done is tried again by the next tick.
    """
    now = timezone.now()
    since, until = days_back(now)
    dead = Reconciliation.objects.filter(
        daily=True, result=Result.RUNNING, begun_at__lt=timezone.now() - DEAD_AFTER
    )
    with faults.commit("reconcile.dead", transaction.atomic()):
        dead.update(result=Result.SILENT, ended_at=timezone.now())
    if Reconciliation.objects.filter(
        daily=True, gateway=settings.PAYMENT_GATEWAY, until=until
    ).exclude(result=Result.SILENT):
        return None
    try:
        row = _begun(_since(now, since, until), until, settings.RECONCILE_APPLY, daily=True)
    except IntegrityError:
        return None  # Another worker has just begun it.
    return _compared(row, lambda _finding: None)


def _since(now: datetime, since: datetime, until: datetime) -> datetime:
    """Go back to where the last daily comparison ended, if that is further and not too far."""
    done = Reconciliation.objects.filter(
        daily=True, gateway=settings.PAYMENT_GATEWAY, until__lt=until
    ).exclude(result=Result.SILENT)
    ended = done.aggregate(last=Max("until"))["last"] or since
    return max(min(since, ended), days_back(now, MOST_DAYS)[0])


def _begun(since: datetime, until: datetime, apply: bool, *, daily: bool) -> Reconciliation:
    with faults.commit("reconcile.begun", transaction.atomic()):
        return Reconciliation.objects.create(
            gateway=settings.PAYMENT_GATEWAY, since=since, until=until, applied=apply, daily=daily
        )


def _compared(row: Reconciliation, tell: Tell) -> Reconciliation:
    work = _Comparison(row.gateway, row.since, row.until, row.applied, tell)
    try:
        work.run()
        if row.daily:
            work.follow()
    except ProcessorSilent:
        row.result = Result.SILENT
    else:
        agreed = Result.REPAIRED if work.repaired else Result.EQUAL
        row.result = Result.LOOK if work.open else agreed
    row.compared, row.counts, row.findings = work.compared, dict(work.counts), work.kept
    row.totals, row.open_findings, row.repaired = work.totals(), work.open, work.repaired
    row.ended_at = timezone.now()
    with faults.commit("reconcile.ended", transaction.atomic()):
        row.save()
        books.refunds_followed(work.followed)
    fields = {
        "since": str(row.since),
        "until": str(row.until),
        "open": row.open_findings,
        "repaired": row.repaired,
        "result": str(row.result),
    }
    if row.result in {Result.LOOK, Result.SILENT}:
        log.error("reconcile.look", extra=fields)
    else:
        log.info("reconcile.agreed", extra=fields)
    return row


@dataclass
class _Comparison:
    """One comparison as it goes along."""

    name: str
    since: datetime
    until: datetime
    apply: bool
    tell: Tell
    now: datetime = field(default_factory=timezone.now)
    compared: int = 0
    open: int = 0
    repaired: int = 0
    kept: list[dict[str, Any]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    sums: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    followed: list[str] = field(default_factory=list)

    @property
    def gateway(self) -> Gateway:
        """Return the processor whose books these are."""
        return gateway_named(self.name)

    def run(self) -> None:
        """Go through the period, day by day and kind by kind.

        Raises:
            ProcessorSilent: the processor did not answer for certain.
        """
        begin = self.since
        while begin < self.until:
            end = min(begin + DAY, self.until)
            for kind in KINDS:
                self._day(kind, begin, end)
            for payment in books.flags_without_dispute(begin, end, self.name):
                self._flag(payment)
            begin = end

    def follow(self) -> None:
        """Ask by name for what was made before the period and may still change.

        Its amount was compared on its own day, and so was whether it is there at all.

        Raises:
            ProcessorSilent: the processor did not answer several times in a row.
        """
        quiet = 0
        refunds = books.refunds_to_follow(self.since, self.name)
        for mine in chain(books.disputes_open(self.since, self.name), refunds):
            if mine.kind == "refund":
                self.followed.append(mine.processor_ref)
            try:
                seen, quiet = self._asked(mine), 0
            except ProcessorSilent:
                quiet += 1
                log.warning("reconcile.no_answer", extra={"object": mine.processor_ref})
                if quiet == MOST_QUIET:
                    raise
                continue
            self.compared += 1
            if seen is not None and differs(mine, seen, self.now) == Difference.STATE:
                finding = finding_of(Difference.STATE, mine, seen)
                repaired = self.apply and self._repaired(seen) is not None
                self._keep(replace(finding, repaired=repaired))

    def totals(self) -> list[dict[str, Any]]:
        """Return, by kind and currency, what each side has moved, and the difference."""
        return [
            {"kind": kind, "currency": currency, "ours": a, "theirs": b, "difference": a - b}
            for (kind, currency), (a, b) in sorted(self.sums.items())
        ]

    def _day(self, kind: SeenKind, begin: datetime, end: datetime) -> None:
        names: set[str] = set()
        intents: set[Any] = set()
        listed = self.gateway.listed(kind, begin - SLACK, end + SLACK)
        for page in _pages(listed, PAGE):
            names.update(one.processor_ref for one in page)
            intents.update(one.intent_id for one in page if one.intent_id is not None)
            self._theirs(kind, [one for one in page if begin <= one.created_at < end])
        for mine in books.ours_within(kind, begin, end, self.name):
            if mine.processor_ref not in names and mine.intent_id not in intents:
                self._mine(mine)

    def _theirs(self, kind: SeenKind, page: list[Seen]) -> None:
        """Compare a page of what the processor has with what we have of it."""
        lines = books.ours_like(kind, page)
        strange = [one.payment_ref for one in page if one.processor_ref not in lines]
        known = books.payments_known(strange)
        for seen in page:
            mine = lines.get(seen.processor_ref)
            if mine is not None:
                found = differs(mine, seen, self.now)
            else:
                found = only_theirs(seen, seen.payment_ref in known, self.now)
            self._line(found, mine, seen, known.get(seen.payment_ref, ""))

    def _mine(self, mine: Ours) -> None:
        """Ask for a line of ours that the list of its day does not have."""
        if mine.state == WAITING and is_young(mine.at, self.now):
            return
        seen = self._asked(mine)
        if seen is None:
            self._line(only_ours(mine, self.now), mine, None)
        elif not self.since <= seen.created_at < self.until:
            # Made in another period than the one our row is of; inside, it is listed on its day.
            self._line(differs(mine, seen, self.now), mine, seen)

    def _asked(self, mine: Ours) -> Seen | None:
        return self.gateway.look_up(mine.kind, mine.processor_ref) if mine.processor_ref else None

    def _flag(self, payment: Payment) -> None:
        """Look for the disputes of a payment that is marked as disputed and has none with us."""
        reference, since = payment.processor_ref, payment.paid_at - DAY
        # Without a name, the list would be of everybody's disputes.
        listed = self.gateway.listed("dispute", since, self.now + SLACK, reference)
        disputes = list(listed) if reference else []
        for seen in disputes:
            if not self.since <= seen.created_at < self.until:
                self._line(Difference.DISPUTE_MISSING, None, seen, payment.reference)
        if not any(seen.state != "won" for seen in disputes):
            side = (payment.amount_minor, payment.currency, "disputed")
            finding = Finding(
                difference=Difference.FLAG_WITHOUT_DISPUTE,
                kind="payment",
                reference=payment.reference,
                processor_ref=payment.processor_ref,
                ours=side,
            )
            self._keep(finding)

    def _line(
        self, found: Difference | None, mine: Ours | None, seen: Seen | None, about: str = ""
    ) -> None:
        """Count a line, and keep and repair its difference."""
        self.compared += 1
        if found is not None:
            finding = finding_of(found, mine, seen)
            finding = finding if finding.reference else replace(finding, reference=about)
            if self.apply and seen is not None and found in REPAIRABLE:
                after = self._repaired(seen)
                mine = after or mine
                finding = replace(finding, repaired=after is not None)
            self._keep(finding)
        self._sum(mine, 0)
        self._sum(seen, 1)

    def _repaired(self, seen: Seen) -> Ours | None:
        """Bring our books to the processor's line; return ours when it is equal now."""
        try:
            observed(seen, source=SOURCE)
        except (DatabaseError, ObjectDoesNotExist, CountersignError):
            # One line that cannot be put right must not keep the others from being compared.
            log.exception("reconcile.repair_failed", extra={"object": seen.processor_ref})
            return None
        mine = books.ours_like(seen.kind, [seen]).get(seen.processor_ref)
        equal = mine is not None and differs(mine, seen, self.now) is None
        return mine if equal and mine is not None and mine.state == seen.state else None

    def _keep(self, finding: Finding) -> None:
        self.counts[str(finding.difference)] += 1
        self.repaired += finding.repaired
        self.open += not finding.repaired
        if len(self.kept) < MOST_KEPT:
            self.kept.append(finding.as_data())
        self.tell(finding)

    def _sum(self, line: Ours | Seen | None, side: int) -> None:
        if line is None or line.kind == "dispute" or line.state not in _MOVED:
            return
        sums = self.sums.setdefault((line.kind, line.currency), [0, 0])
        sums[side] += line.amount_minor


def _pages(items: Iterable[ItemT], size: int) -> Iterator[list[ItemT]]:
    rest = iter(items)
    while page := list(islice(rest, size)):
        yield page
