"""Faults to plant in what a refund and a ticket leave, and what must be said of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import uuid4

import httpx

from tests.payments.processor import ACCESS, Processor


def again(table: str, changes: str, where: str = "TRUE") -> str:
    """Return the statement that stores the rows of a table once more, with some changes."""
    return (
        f"INSERT INTO {table} SELECT (jsonb_populate_record(t, jsonb_build_object({changes}))).*"  # noqa: S608
        f" FROM {table} t WHERE {where}"
    )


NEW: Final = "'id', gen_random_uuid()"
AFTER_ALL: Final = "(SELECT max(id) + 1 FROM runs_event)"

PLANTS: Final[Mapping[str, tuple[str, str]]] = {
    "a cent more went back by the ledger": (
        "UPDATE payments_refund SET amount_minor = 501 WHERE intent_id IS NOT NULL",
        "refunds",
    ),
    "a refund has no intent": (
        "UPDATE payments_refund SET intent_id = NULL WHERE intent_id IS NOT NULL",
        "refunds",
    ),
    "an intent failed": ("UPDATE payments_intent SET state = 'failed'", "intents"),
    "an intent is open": (
        "UPDATE payments_intent SET state = 'open', settled_at = NULL",
        "an intent is open",
    ),
    "an intent came twice": (
        again(
            "payments_intent",
            f"{NEW}, 'idempotency_key', 'twice', 'call_id', NULL, 'review_id', gen_random_uuid()",
        ),
        "intents",
    ),
    "an invoice is paid": (
        "UPDATE payments_invoice SET state = 'paid' WHERE reference = 'INV-1001'",
        "paid",
    ),
    "a message is owed": ("UPDATE payments_intentcall SET waiting = TRUE", "owed a message"),
    "a ticket came twice": (
        again(
            "tickets_ticket",
            f"{NEW}, 'reference', 'TK-TWICE', 'call_id', NULL, 'identity', 'twice'",
        ),
        "tickets",
    ),
    "a review was not used": ("UPDATE reviews_review SET consumed_at = NULL", "reviews"),
    "a review is pending": (
        "UPDATE reviews_review SET state = 'pending', decided_at = NULL, consumed_at = NULL",
        "a review is pending",
    ),
    "a run is in its queue": ("UPDATE runs_run SET state = 'queued'", "a run is queued"),
    "a run failed": ("UPDATE runs_run SET state = 'failed'", "runs"),
    "a strike too many": ("UPDATE runs_run SET strikes = 1", "1 strikes"),
    "a run is suspected": ("UPDATE runs_run SET quarantined = TRUE", "quarantined True"),
    "no stop record": ("DELETE FROM runs_stoprecord", "has 0 stop records"),
    "a stop record of other figures": (
        "UPDATE runs_stoprecord SET model_calls_made = model_calls_made + 1",
        "stops",
    ),
    "the end was told twice": (
        again("runs_event", f"'id', {AFTER_ALL}", "kind = 'stop'"),
        "2 stop events",
    ),
    "an answer came twice": (
        again("runs_message", f"{NEW}, 'position', position + 100", "role = 'assistant'"),
        "2 answers of one run",
    ),
    "no answer": ("DELETE FROM runs_message WHERE role = 'assistant'", "0 answers of one run"),
    "a notice came twice": (
        again(
            "runs_message",
            f"{NEW}, 'role', 'notice', 'text', 'It went through.', 'client_key', NULL,"
            " 'position', position + 100",
            "role IN ('staff', 'assistant')",
        ),
        "a notice stands 2 times",
    ),
    "a word more": (
        "UPDATE runs_message SET text = text || ' again' WHERE role = 'assistant'",
        "transcript",
    ),
    "what was asked has other words": (
        "UPDATE runs_message SET text = 'refund all' WHERE role = 'staff'",
        "asked",
    ),
    "a call is at work": ("UPDATE runs_call SET state = 'running'", "is left running"),
    "a call ended otherwise": (
        "UPDATE runs_call SET outcome = jsonb_set(outcome, '{code}', '\"other\"')",
        "calls",
    ),
    "the model was asked once more": (
        "UPDATE runs_modelcall SET number = number + 9",
        "model",
    ),
}


def refund_sent(processor: Processor, payment: str, amount_minor: int) -> None:
    """Send money back that the ledger knows nothing of."""
    httpx.post(
        f"{processor.url}/v1/refunds",
        data={"payment_intent": payment, "amount": str(amount_minor)},
        headers=ACCESS | {"Idempotency-Key": str(uuid4())},
        trust_env=False,
    ).raise_for_status()
