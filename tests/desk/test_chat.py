"""The chat: sending, waiting in line, stopping, going on, and why it stopped."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agent_core.runs.models import Conversation, Message, Run
from agent_core.runs.selectors import event_latest
from exports.models import Export
from payments.models import Payment
from reviews.models import Review
from tests.desk.conftest import Enter, asked, begun, called, ended, waiting_refund

DATA: dict[str, Any] = {"headers": {"Accept": "application/json"}}
EVIDENCE = {"limit": "model_calls", "used": 12, "allowed": 12}


def page(client: Client, talk: Conversation) -> str:
    """Return the chat page's markup."""
    answer = client.get(reverse("chat", args=[talk.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def words(html: str) -> str:
    """Return what a person reads: no tags, single blanks."""
    body = re.sub(r"(?s)<(script|style|template)\b.*?</\1>", " ", html)
    # A link inside a sentence is no gap in it.
    body = re.sub(r"</?(?:a|bdi)\b[^>]*>", "", body)
    return " ".join(re.sub(r"<[^>]+>", " ", body).split())


def test_a_conversation_begins_with_its_first_message(enter: Enter, tom: User) -> None:
    client = enter(tom)
    answer = client.post("/", {"text": "find ana@example.com", "client_key": str(uuid4())})
    talk = Conversation.objects.get()
    assert answer.headers["Location"] == reverse("chat", args=[talk.pk])
    assert [message.text for message in talk.messages.all()] == ["find ana@example.com"]
    assert "find ana@example.com" in words(page(client, talk))


def test_a_page_that_is_sent_twice_begins_one_conversation(enter: Enter, tom: User) -> None:
    client = enter(tom)
    form = {"text": "find ana@example.com", "client_key": str(uuid4())}
    first, second = client.post("/", form), client.post("/", form)
    assert first.headers["Location"] == second.headers["Location"]
    assert Conversation.objects.count() == Message.objects.count() == Run.objects.count() == 1


def test_an_example_is_sent_as_it_stands(enter: Enter, tom: User) -> None:
    client = enter(tom)
    client.post("/", {"text": "", "example": "find good-card@example.com"})
    assert Message.objects.get().text == "find good-card@example.com"


def test_an_empty_first_message_is_refused_beside_the_field(enter: Enter, tom: User) -> None:
    answer = enter(tom).post("/", {"text": "   "})
    assert answer.status_code == 400
    assert "Write what the customer needs, then send." in words(answer.content.decode())
    assert Conversation.objects.count() == 0


def test_a_message_too_long_keeps_what_was_typed(enter: Enter, tom: User) -> None:
    answer = enter(tom).post("/", {"text": "x" * 8001})
    assert answer.status_code == 400
    assert "x" * 8001 in answer.content.decode()
    assert Conversation.objects.count() == 0


def test_a_message_is_sent_without_scripts_by_a_form(enter: Enter, talk: Conversation) -> None:
    address = reverse("api-messages", args=[talk.pk])
    answer = enter(talk.owner).post(address, {"text": "hello"})
    assert answer.headers["Location"] == reverse("chat", args=[talk.pk])
    assert Message.objects.get().text == "hello"


def test_a_message_sent_twice_with_one_key_is_one_message(enter: Enter, talk: Conversation) -> None:
    client, key = enter(talk.owner), str(uuid4())
    address = reverse("api-messages", args=[talk.pk])
    first = client.post(address, {"text": "hello", "client_key": key}, **DATA).json()
    second = client.post(address, {"text": "hello", "client_key": key}, **DATA).json()
    assert first["run"] == second["run"]
    assert first["client_key"] != key
    assert first["refresh"][0] == ["message", str(Message.objects.get().pk)]
    assert Run.objects.count() == 1


def test_a_refused_message_is_a_sentence_for_the_page(enter: Enter, talk: Conversation) -> None:
    address = reverse("api-messages", args=[talk.pk])
    answer = enter(talk.owner).post(address, {"text": " "}, **DATA)
    assert answer.status_code == 400
    assert answer.json() == {"error": "Write what the customer needs, then send."}
    assert Message.objects.count() == 0


@pytest.mark.parametrize("form", [{"text": "hello"}, {"text": " "}, {"text": "x", "measure": "1"}])
def test_no_message_at_all_reaches_somebody_elses_conversation(
    enter: Enter, talk: Conversation, dana: User, form: dict[str, str]
) -> None:
    """What may not be sent anywhere is not found there either."""
    addresses = [reverse("api-messages", args=[each]) for each in (talk.pk, uuid4())]
    answers = [enter(dana).post(address, form, **DATA) for address in addresses]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert not Message.objects.exists()


def test_an_ended_session_is_told_so_and_the_draft_is_kept(
    client: Client, talk: Conversation
) -> None:
    answer = client.post(reverse("api-messages", args=[talk.pk]), {"text": "hello"}, **DATA)
    assert answer.status_code == 401
    assert answer.json()["error"].startswith("You have been signed out. What you typed is kept")
    assert Message.objects.count() == 0


def test_a_forged_post_is_refused(talk: Conversation) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(talk.owner)
    answer = client.post(reverse("api-messages", args=[talk.pk]), {"text": "hello"})
    assert answer.status_code == 403
    assert Message.objects.count() == 0


def test_what_is_typed_during_a_run_waits_in_line_visibly(enter: Enter, talk: Conversation) -> None:
    begun(asked(talk, "find ana@example.com"))
    second = asked(talk, "and her payments")
    assert second.state == "pending"
    said = words(page(enter(talk.owner), talk))
    assert said.index("and her payments") < said.index(
        "In line: it waits until the present request is done."
    )


def test_a_running_call_is_named_in_plain_words(enter: Enter, talk: Conversation) -> None:
    called(begun(asked(talk, "find ana@example.com")), state="running", content="")
    html = page(enter(talk.owner), talk)
    assert "Looking up the customer…" in words(html)
    assert "Looking up the customer running" in words(html)
    assert "data-stop-run" in html


def test_a_call_that_is_done_says_so_in_the_past_with_its_duration(
    enter: Enter, talk: Conversation
) -> None:
    start = timezone.now()
    run = asked(talk, "find ana@example.com")
    called(run, started_at=start, ended_at=start + timedelta(seconds=1.5))
    ended(run)
    assert "Looked up the customer done 1.5 s" in words(page(enter(talk.owner), talk))


def test_under_the_answer_it_says_why_it_stopped(enter: Enter, talk: Conversation) -> None:
    run = ended(
        asked(talk, "refund and export"),
        rule="policy_block",
        answer="PAY-7001 is disputed, so it cannot be refunded.",
        done=["Started the export"],
        not_done=["Refund of PAY-7001"],
        model_calls_made=2,
        model_calls_saved=1,
        tokens_saved=1240,
    )
    html = page(enter(talk.owner), talk)
    said = words(html)
    assert "Stopped: a rule or a person refused" in said
    assert "One step was refused" in said
    assert "2 model calls made, 1 saved (1,240 tokens)" in said
    assert "Done: Started the export Not done: Refund of PAY-7001" in said
    assert f'href="{reverse("run", args=[run.pk])}"' in html
    answer = Message.objects.get(role="assistant")
    assert html.index(f"message-{answer.pk}") < html.index(f"stop-{run.pk}")


def test_every_end_has_its_explanation_in_words(enter: Enter, talk: Conversation) -> None:
    rules = ("policy_block", "completed", "fatal", "budget", "answered")
    for rule in (*rules, "cancelled", "failed", "parked"):
        ended(asked(talk, "ask"), rule=rule, answer="x")
    said = words(page(enter(talk.owner), talk))
    assert said.count("Stopped:") == 8
    for code in ("policy_block", "Stopped: budget", "Stopped: fatal", "Stopped: parked"):
        assert code not in said


def test_a_late_answer_says_which_question_it_belongs_to(
    enter: Enter, talk: Conversation, payment: Payment
) -> None:
    first = asked(talk, "refund 5 EUR of PAY-7001")
    waiting_refund(first, payment)
    ended(asked(talk, "what is the status?"), answer="It waits for Maria.")
    Run.objects.filter(pk=first.pk).update(state="queued")
    first.refresh_from_db()
    ended(first, answer="Refunded.")
    said = words(page(enter(talk.owner), talk))
    assert said.index("It waits for Maria.") < said.index(
        "to: “refund 5 EUR of PAY-7001” Refunded."
    )
    assert said.count("to: “") == 1


def test_a_stop_is_asked_and_the_run_then_says_stopping(enter: Enter, talk: Conversation) -> None:
    run, client = begun(asked(talk, "find ana@example.com")), enter(talk.owner)
    answer = client.post(reverse("api-cancel", args=[run.pk]), **DATA)
    assert answer.json() == {"refresh": [["run", str(run.pk)], ["stop", str(run.pk)]]}
    run.refresh_from_db()
    assert run.cancel_requested_at is not None
    html = page(client, talk)
    assert "Stopping…" in words(html)
    assert "data-stop-run" not in html


def test_a_run_that_failed_can_be_gone_on_with_once(enter: Enter, talk: Conversation) -> None:
    run, client = (
        ended(asked(talk, "find ana"), rule="failed", answer="A fault."),
        enter(talk.owner),
    )
    assert "Go on" in words(page(client, talk))
    for _click in range(2):
        client.post(reverse("api-retry", args=[run.pk]))
    assert Run.objects.filter(continues=run).count() == 1
    html = page(client, talk)
    assert "Go on" not in words(html)
    assert Message.objects.filter(role="staff").count() == 1


def test_what_cannot_be_gone_on_with_is_refused_in_words(enter: Enter, talk: Conversation) -> None:
    run = ended(asked(talk, "find ana"))
    answer = enter(talk.owner).post(reverse("api-retry", args=[run.pk]), **DATA)
    assert answer.status_code == 409
    assert answer.json()["error"] == (
        "Only a request that failed or was stopped can be tried again."
    )
    assert Run.objects.count() == 1


def test_fragments_are_the_markup_of_the_page(
    enter: Enter, talk: Conversation, payment: Payment, export: Export
) -> None:
    run = asked(talk, "refund 5 EUR of PAY-7001")
    review = waiting_refund(run, payment)
    Run.objects.filter(message__text__startswith="export").update(state="done")
    done = ended(asked(talk, "find ana"))
    client = enter(talk.owner)
    html = _plain(page(client, talk))
    answer = Message.objects.get(role="assistant")
    items = [
        ("message", answer.pk),
        ("message", done.message_id),
        ("text", done.message_id),
        ("work", run.pk),
        ("run", run.pk),
        ("call", run.calls.get().pk),
        ("review", review.pk),
        ("export", export.pk),
        ("stop", done.pk),
        ("head", talk.pk),
    ]
    for kind, item in items:
        found = client.get(reverse("fragment", args=[talk.pk, kind, item]))
        assert found.status_code == 200, kind
        assert _plain(found.content.decode()) in html, kind


def _plain(html: str) -> str:
    """Take out what differs by design: blanks, forms' tokens, where a plain form leads back to."""
    html = re.sub(r'name="(csrfmiddlewaretoken|next)" value="[^"]*"', "", html)
    return re.sub(r"\s+", "", html)


def test_the_stream_begins_after_what_the_page_has_shown(enter: Enter, talk: Conversation) -> None:
    ended(asked(talk, "find ana"))
    assert f'data-after="{event_latest(talk.pk)}"' in page(enter(talk.owner), talk)


def test_an_export_shows_real_numbers_and_survives_a_reload(
    enter: Enter, talk: Conversation, export: Export
) -> None:
    client = enter(talk.owner)
    for _load in range(2):
        html = page(client, talk)
        assert re.search(r'<progress max="200" value="50"[^>]*>25%</progress>', html)
        assert "50 of 200 rows, 25 %" in words(html)
    Export.objects.filter(pk=export.pk).update(
        state="ready",
        rows_done=200,
        sha256="s",
        file="exports/x",
        bytes=2048,
        expires_at=timezone.now() + timedelta(hours=1),
    )
    html = page(client, talk)
    assert "<progress" not in html
    assert f'href="{reverse("exports:download", args=[export.pk])}"' in html
    assert "Download EXP-7001 (2.0 KB)" in words(html)


def test_nothing_technical_is_read_in_the_chat_or_on_the_runs_page(
    enter: Enter, talk: Conversation, payment: Payment
) -> None:
    """Let every state and outcome stand on the page, then read it as a person does (B57)."""
    outcomes = [("completed", "done"), ("transient", "unknown"), ("fatal", "failed")]
    run = asked(talk, "refund 5 EUR of PAY-7001")
    for reason, state in (*outcomes, ("policy_block", "refused")):
        called(
            run,
            tool="refund_request",
            state=state,
            label="Refunding the payment",
            arguments={"payment": "PAY-7001", "call_token": "x_9"},
            outcome={"v": 1, "reason": reason, "stop": True, "code": "refund.x", "data": {}},
        )
    waiting_refund(run, payment)
    ended(asked(talk, "x"), rule="budget", answer="x", evidence=EVIDENCE)
    client = enter(talk.owner)
    for address in (reverse("chat", args=[talk.pk]), reverse("run", args=[run.pk])):
        said = words(client.get(address).content.decode())
        assert not re.search(r"\b\w+_\w+\b", said), "a name of code"
        assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", said), "an identifier"
        assert not re.search(r"https?://|[{}]|\brefund\.x\b", said)


def test_a_card_waits_after_a_reload_and_a_new_message_runs_beside_it(
    enter: Enter, talk: Conversation, review: Review
) -> None:
    """Reload while the review waits, then ask something else: both stand on the page (B58)."""
    client = enter(talk.owner)
    for _load in range(2):
        assert f'id="review-{review.pk}"' in page(client, talk)
    client.post(reverse("api-messages", args=[talk.pk]), {"text": "what is the status?"})
    assert Run.objects.order_by("created_at").last().state == "queued"  # type: ignore[union-attr]
    html = page(client, talk)
    assert f'id="review-{review.pk}"' in html
    assert Review.objects.get().state == "pending"


@pytest.mark.parametrize(("state", "said"), [("waiting", False), ("running", True)])
def test_the_runs_page_calls_only_an_outcome_unclear_that_there_may_be(
    enter: Enter, talk: Conversation, state: str, said: bool
) -> None:
    """A step that was only asked for when its run was stopped was never begun."""
    run = begun(asked(talk, "charge INV-1"))
    times = {} if state == "waiting" else {"started_at": timezone.now()}
    called(run, tool="charge_invoice", state=state, content="", effect=True, **times)
    ended(run, rule="cancelled")
    html = enter(talk.owner).get(reverse("run", args=[run.pk])).content.decode()
    assert ("unclear" in words(html)) is said
