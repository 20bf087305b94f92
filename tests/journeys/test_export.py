"""Export: a job of its own, progress in the chat, a file at the end, and for nobody else."""

import csv
import io
from collections.abc import Callable
from typing import Any

from django.test import Client

from agent_core.runs.models import Event
from exports.models import Export
from tests.journeys.chat import Chat, approve, exports_pump, outcome, person, sent_back, stop
from tests.payments.processor import Processor


def fetched(username: str, export: Export) -> tuple[int, bytes]:
    """Return the status and body that a person gets under the download address."""
    client = Client()
    client.force_login(person(username))
    answer = client.get(f"/exports/{export.pk}/download/")
    return answer.status_code, answer.getvalue()


def told(chat: Chat) -> list[tuple[str, int]]:
    """Return (state, rows done) of every progress event of the conversation."""
    events = Event.objects.filter(conversation=chat.conversation, kind="export").order_by("pk")
    return [(event.payload["state"], event.payload["done"]) for event in events]


def test_an_export_is_begun_at_once_and_its_file_is_ready_at_the_end(
    chat: Chat, style: str
) -> None:
    run = chat.say("export payments of last month as csv")
    assert stop(run) == ("completed", 1, 1)
    export = Export.objects.get()
    assert export.state == "queued"
    assert chat.answer().startswith(f"Export {export.reference} is being prepared: Payments ")
    assert fetched("agent", export)[0] != 200
    exports_pump()
    export.refresh_from_db()
    assert (export.state, export.rows_done) == ("ready", export.rows_total)
    states = [state for state, _done in told(chat)]
    assert (states[0], states[-1]) == ("queued", "ready")
    status, body = fetched("agent", export)
    rows = list(csv.reader(io.StringIO(body.decode("utf-8-sig"))))
    assert status == 200
    assert len(rows) == 1 + (export.rows_total or 0)
    flat = "\n".join(",".join(row) for row in rows)
    assert ("PAY-10011" in flat, "PAY-10013" in flat, "PAY-10071" in flat) == (True, False, False)


def test_the_file_is_nobody_elses(chat: Chat) -> None:
    chat.say("export payments of last month as csv")
    exports_pump()
    export = Export.objects.get()
    assert [fetched(name, export)[0] for name in ("south", "lead", "agent")] == [404, 404, 200]


def test_asked_twice_while_it_runs_it_is_one_export(chat: Chat) -> None:
    chat.say("export payments of last month as csv")
    chat.say("export payments of last month as csv")
    export = Export.objects.get()
    assert outcome(chat.calls()[1])["already_applied"] is True
    assert chat.answer().startswith(f"This export is already on its way as {export.reference}")


def test_a_period_without_payments_is_said_and_makes_no_file(chat: Chat) -> None:
    run = chat.say("export payments of 1999-01 as csv")
    assert stop(run)[0] in ("completed", "answered")
    assert not Export.objects.exists()


def test_a_refund_and_an_export_in_one_message_the_export_does_not_wait(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10011 and export payments of last month as csv")
    assert run.state == "waiting"
    exports_pump()
    export = Export.objects.get()
    assert (export.state, fetched("agent", export)[0]) == ("ready", 200)
    (review,) = chat.reviews()
    assert (review.state, product.books()["requests"]) == ("pending", [])
    approve(review)
    run.refresh_from_db()
    assert stop(run) == ("completed", 1, 1)
    receipt, begun = chat.answer().split("\n\n")
    assert "5.00 EUR of PAY-10011 was refunded to Ana Silva" in receipt
    assert begun.startswith(f"Export {export.reference} ")
    assert sent_back(product, "PAY-10011") == [500]


def test_with_one_call_at_a_time_the_export_follows_the_decision(
    chats: Callable[[str], Chat], product: Processor, settings: Any
) -> None:
    settings.CHAT_MODEL = "offline:one-at-a-time@0"
    chat = chats("agent")
    run = chat.say("refund 5.00 of PAY-10011 and export payments of last month as csv")
    approve(chat.reviews()[0])
    exports_pump()
    run.refresh_from_db()
    assert stop(run) == ("completed", 2, 1)
    assert Export.objects.get().state == "ready"
    assert sent_back(product, "PAY-10011") == [500]
