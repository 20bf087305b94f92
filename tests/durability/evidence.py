"""What is left when everything is over: books, ledger, transcript, reviews, stop records, files."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any, Final

from django.core.files.storage import default_storage
from django.db import connection

from agent_core.runs.models import Call, Event, Message, ModelCall, Run, StopRecord
from agent_core.runs.states import RUN_FINAL, Role
from exports.models import Export
from payments.models import Intent, IntentCall, Invoice, Payment, Refund
from reviews.models import Review
from tests.payments.processor import Processor
from tickets.models import Ticket

Facts = dict[str, Any]

_REFERENCE: Final = re.compile(r"\b[A-Z]{2,4}-[A-Z0-9]{4,}\b")
_OPEN_CALLS: Final = ("queued", "running", "waiting", "unknown")


def facts(processor: Processor) -> Facts:
    """Return what must be the same however often somebody died on the way."""
    books = processor.books()
    charged = [row for row in books["payment_intents"] if not row["id"].startswith("pi_earlier_")]
    return {
        "sent back": sorted((row["payment_intent"], row["amount"]) for row in books["refunds"]),
        "charged": sorted(row["amount"] for row in charged if row["status"] == "succeeded"),
        "refunds": sorted(
            Refund.objects.exclude(intent=None).values_list(
                "payment__reference", "amount_minor", "state"
            )
        ),
        "payments": sorted(
            Payment.objects.exclude(intent=None).values_list(
                "invoice__reference", "amount_minor", "state"
            )
        ),
        "paid": sorted(Invoice.objects.filter(state="paid").values_list("reference", flat=True)),
        "intents": sorted(Intent.objects.values_list("operation", "amount_minor", "state")),
        "tickets": sorted(Ticket.objects.values_list("subject", "payment_reference")),
        "exports": [
            (each.state, each.rows_done == each.rows_total, bool(each.file), each.failure)
            for each in Export.objects.all()
        ],
        "reviews": [
            (each.kind, each.amount_minor, each.state, each.consumed_at is not None)
            for each in Review.objects.order_by("created_at", "title")
        ],
        "runs": list(Run.objects.order_by("created_at").values_list("state", flat=True)),
        "asked": [
            (text, removed is not None)
            for text, removed in Message.objects.filter(role=Role.STAFF)
            .order_by("created_at")
            .values_list("text", "removed_at")
        ],
    }


def told(facts_: Facts) -> Facts:
    """Add what is said word by word, and how the model was used: for turns that know their end."""
    return {
        **facts_,
        "transcript": transcript(),
        "rows": list(Export.objects.values_list("rows_total", flat=True)),
        "stops": [
            (each.rule, each.model_calls_made, each.model_calls_saved, named(str(each.done)))
            for each in StopRecord.objects.order_by("run__created_at")
        ],
        "calls": [
            (each.tool, each.state, (each.outcome or {}).get("code"))
            for each in Call.objects.order_by("run__created_at", "batch", "position")
        ],
        "model": sorted(set(ModelCall.objects.values_list("run__message__text", "number"))),
    }


def transcript() -> list[tuple[str, str]]:
    """Return all lines with every new reference replaced by its place among them."""
    lines = Message.objects.order_by("conversation__created_at", "position")
    whole = "\x00".join(f"{line.role}\x01{line.text}" for line in lines)
    return [
        (role, text)
        for role, _sign, text in (line.partition("\x01") for line in named(whole).split("\x00"))
    ]


def named(text: str) -> str:
    """Replace each reference by its place among those of the text."""
    seen: dict[str, str] = {}
    return _REFERENCE.sub(lambda found: seen.setdefault(found[0], f"#{len(seen)}"), text)


def wrong() -> list[str]:
    """Say what no case may leave behind, whatever it was about."""
    found = [
        f"run {run.state} has {count} stop records"
        for run in Run.objects.all()
        if (count := StopRecord.objects.filter(run=run).count()) != 1
    ]
    found += [f"a run is {state}" for state in _states() if state not in RUN_FINAL]
    found += [
        f"{call.tool} is left {call.state}" for call in Call.objects.filter(state__in=_OPEN_CALLS)
    ]
    found += [f"an intent is open: {each}" for each in Intent.objects.filter(state="open")]
    found += [f"a review is pending: {each}" for each in Review.objects.filter(state="pending")]
    if waiting := IntentCall.objects.filter(waiting=True).count():
        found.append(f"{waiting} conversations are owed a message")
    counted = Counter(Event.objects.filter(kind="stop").values_list("run_id", flat=True))
    found += [f"{count} stop events for one run" for count in counted.values() if count != 1]
    for run in Run.objects.all():
        answers = Message.objects.filter(run=run, role=Role.ASSISTANT).count()
        if answers > 1 or (answers == 0 and run.state == "done"):
            found.append(f"{answers} answers of one run")
    notices = Message.objects.filter(role=Role.NOTICE).values_list("conversation", "text")
    found += [
        f"a notice stands {n} times: {what[1]}" for what, n in Counter(notices).items() if n > 1
    ]
    return found + _files_wrong()


def _states() -> list[str]:
    return list(Run.objects.values_list("state", flat=True))


def _files_wrong() -> list[str]:
    """Check each file against its sum, and that there is no other one."""
    found, known = [], set()
    for export in Export.objects.exclude(file=""):
        known.add(export.file.removeprefix("exports/"))
        with default_storage.open(export.file, "rb") as stored:
            content = stored.read()
        if hashlib.sha256(content).hexdigest() != export.sha256 or len(content) != export.bytes:
            found.append(f"{export.file} is not the file that was checked")
    if default_storage.exists("exports"):
        left = set(default_storage.listdir("exports")[1]) - known
        found += [f"a file of no export: {name}" for name in sorted(left)]
    return found


def rows() -> dict[str, list[str]]:
    """Return every row of every table, checkpoints included, as text."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        )
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(f"SELECT t::text FROM {table} t ORDER BY 1")  # noqa: S608 - a quoted name
            found[table] = [text for (text,) in cursor.fetchall()]
    return found


def changed(before: dict[str, list[str]], after: dict[str, list[str]]) -> list[str]:
    """Return the rows that differ between two looks at the tables."""
    return [
        f"{table}: {sign}{row[:300]}"
        for table in before
        for sign, ours, theirs in (("-", before, after), ("+", after, before))
        for row in (Counter(ours[table]) - Counter(theirs[table])).elements()
    ]
