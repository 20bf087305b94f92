"""Hold what was sent against the product's tables and the processor's books. Pure.

Each check returns a sentence for every wrong thing it finds; none is good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from tests.chaos.rows import EffectRow, Moved, RunRow, Tables
from tests.chaos.scripts import Wish

WAITING: Final = "waiting"
PARKED: Final = "parked"


@dataclass(frozen=True, slots=True)
class Asked:
    """One accepted message: its first run, further runs for the same key, and what it wished."""

    run_id: UUID
    message_id: UUID
    wishes: tuple[Wish, ...] = ()
    doubles: frozenset[UUID] = frozenset()


def found_wrong(
    asked: Sequence[Asked], tables: Tables, moved: Sequence[Moved]
) -> dict[str, list[str]]:
    """Return what each check has found, by its name."""
    return {
        "lost": list(lost(asked, tables)),
        "doubled": list(doubled(asked, tables, moved)),
        "stuck": list(stuck(tables)),
        "parked": [f"run {run.id} is set aside" for run in tables.runs if run.state == PARKED],
        "wrong ledger rows": list(ledger_wrong(asked, tables, moved)),
        "wrong transcripts": list(transcript_wrong(tables)),
    }


def lost(asked: Sequence[Asked], tables: Tables) -> Iterator[str]:
    """Find messages without a run, and runs that ended without a record or an answer."""
    runs = {run.id: run for run in tables.runs}
    for one in asked:
        if one.run_id not in runs:
            yield f"message {one.message_id} was accepted and its run {one.run_id} is gone"
    for run in tables.runs:
        if run.final and not (run.stops and run.answers):
            yield f"run {run.id} is {run.state} with {run.stops} records, {run.answers} answers"


def doubled(asked: Sequence[Asked], tables: Tables, moved: Sequence[Moved]) -> Iterator[str]:
    """Find what happened twice: effects of a message, money of an intent, records, answers."""
    for run in tables.runs:
        if run.stops > 1 or run.answers > 1:
            yield f"run {run.id} has {run.stops} records and {run.answers} answers"
    for one in asked:
        if one.doubles - {one.run_id}:
            yield f"message {one.message_id} was sent twice and has runs {sorted(one.doubles)}"
    yield from _runs_doubled(tables.runs)
    for (kind, intent), count in Counter((move.kind, move.intent) for move in moved).items():
        if count > 1:
            yield f"the processor made {count} times the {kind} of intent {intent}"
    yield from _effects_doubled(asked, tables)


def _runs_doubled(runs: Sequence[RunRow]) -> Iterator[str]:
    """A message has one line of runs, each the retry of the one before it."""
    ends = Counter(run.message_id for run in runs if not run.followed)
    for message, count in ends.items():
        if count > 1:
            yield f"message {message} is worked off by {count} runs"


def _effects_doubled(asked: Sequence[Asked], tables: Tables) -> Iterator[str]:
    runs_of = defaultdict(set)
    for run in tables.runs:
        runs_of[run.message_id].add(run.id)
    for one in asked:
        for wish in one.wishes:
            made = effects_of(wish, tables.effects, runs_of[one.message_id])
            if len(made) > 1:
                yield f"message {one.message_id} made {len(made)} times: {wish.kind} {wish.target}"


def effects_of(wish: Wish, effects: Sequence[EffectRow], runs: set[UUID]) -> list[EffectRow]:
    """List what was made of a wish. Exports are alike by their period, so the run must fit too."""
    return [
        effect
        for effect in effects
        if effect.kind == wish.kind
        and effect.target == wish.target
        and (effect.kind != "export" or effect.run_id in runs)
    ]


def stuck(tables: Tables) -> Iterator[str]:
    """Find what neither ended nor waits for people."""
    for run in tables.runs:
        if not run.final and run.state != WAITING:
            yield f"run {run.id} is {run.state}"
    yield from tables.work_open


def ledger_wrong(asked: Sequence[Asked], tables: Tables, moved: Sequence[Moved]) -> Iterator[str]:
    """Compare our rows with the processor's books, row by row and to the cent."""
    ours = {row.processor_ref: row for row in tables.effects if row.kind in {"charge", "refund"}}
    theirs = {move.id: move for move in moved}
    for ref in ours.keys() | theirs.keys():
        row, move = ours.get(ref), theirs.get(ref)
        if row is None or move is None:
            yield f"{ref}: ours {row}, the processor's {move}"
        elif (row.kind, row.amount_minor) != (move.kind, move.amount_minor):
            yield f"{ref}: ours {row.amount_minor}, the processor's {move.amount_minor}"
    charged = {row.target for row in ours.values() if row.kind == "charge"}
    for reference in charged ^ tables.invoices_paid:
        yield f"{reference} is {'charged' if reference in charged else 'paid'}, not both"
    yield from _wishes_wrong(asked, tables)


def _wishes_wrong(asked: Sequence[Asked], tables: Tables) -> Iterator[str]:
    """Find amounts nobody asked for, and answers that tell of what was not done."""
    wished: dict[tuple[str, str], int] = {
        (wish.kind, wish.target): wish.amount_minor for one in asked for wish in one.wishes
    }
    for row in tables.effects:
        amount = wished.get((row.kind, row.target))
        if amount is None:
            yield f"nobody asked for: {row}"
        elif amount != row.amount_minor:
            yield f"asked for {amount}, done: {row}"
    completed = {run.message_id for run in tables.runs if run.rule == "completed"}
    # A request for a file that is already being made attaches to it.
    made: Mapping[tuple[str, str], int] = Counter((r.kind, r.target) for r in tables.effects)
    for one in asked:
        for wish in one.wishes:
            if one.message_id in completed and not made.get((wish.kind, wish.target)):
                yield f"told as done and not done: {wish}"


def transcript_wrong(tables: Tables) -> Iterator[str]:
    """Check each conversation's lines and the order of its events."""
    yield from tables.gaps
    yield from tables.calls_open
    clock: dict[UUID, float] = {}
    attempts: dict[UUID, int] = {}
    stops: Counter[UUID] = Counter()
    for event in tables.events:
        at = event.at.timestamp()
        if at < clock.get(event.conversation_id, 0.0):
            yield f"conversation {event.conversation_id}: an event of {event.at} comes too late"
        clock[event.conversation_id] = at
        if event.run_id is None or event.kind not in {"run", "reset", "stop"}:
            continue
        if event.attempt < attempts.get(event.run_id, 0):
            yield f"run {event.run_id}: {event.kind} of attempt {event.attempt} comes too late"
        attempts[event.run_id] = event.attempt
        if stops[event.run_id]:
            yield f"run {event.run_id}: {event.kind} after its end"
        stops[event.run_id] += event.kind == "stop"
    for run in tables.runs:
        if run.final and not stops[run.id]:
            yield f"run {run.id} has ended and no event says so"
