"""One ticket per wish; a bad subject is refused with a sentence, and nothing else happens."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from agent_core.contract import outcome_read
from agent_core.errors import StaleAttempt
from agent_core.policy import Proposal, verdict_of
from reviews.audit.models import Entry
from tests.tickets.conftest import OTHER_TEAM, PAYMENT, TEAM, Context, person
from tickets import services
from tickets.errors import MoveRefused, NotFound, TicketRefused
from tickets.models import Ticket
from tickets.selectors import ticket_for, tickets_for
from tickets.services import note_add, ticket_identity, ticket_move
from tickets.states import FINAL, TRANSITIONS, Priority, State
from tickets.tools import TOOLS, ticket_create

NO_SUBJECT = "A ticket needs a subject. No ticket was opened."


def test_a_ticket_is_opened_and_named(context: Context, ana: User) -> None:
    call = context(customer_id=uuid4())
    text, artifact = ticket_create(
        call, subject="Box crushed", body="Photo attached.\r\nPlease call.", payment="pay-1"
    )
    ticket = Ticket.objects.get()
    assert text == (f"Ticket {ticket.reference} was opened: “Box crushed”. It is linked to pay-1.")
    assert (
        artifact["reason"],
        artifact["stop"],
        artifact["code"],
        artifact["already_applied"],
    ) == (
        "completed",
        True,
        "ticket.created",
        False,
    )
    assert artifact["data"] == {"ticket": ticket.reference, "ticket_id": str(ticket.pk)}
    assert ticket.reference.startswith("TCK-")
    assert ticket.body == "Photo attached.\nPlease call."
    assert (ticket.state, ticket.priority, ticket.team_id) == ("open", "normal", TEAM)
    assert (ticket.payment_id, ticket.payment_reference) == (PAYMENT, "pay-1")
    assert (ticket.requester, ticket.customer_id) == (ana, call.customer_id)
    assert (ticket.conversation_id, ticket.call_id) == (call.conversation_id, call.call_id)


def test_saying_it_twice_gives_the_first_one_again(context: Context) -> None:
    text, _ = ticket_create(context(), subject="Box crushed", payment="PAY-1")
    again, artifact = ticket_create(
        context(), subject="  box\nCRUSHED. ", body="Other words.", payment="pay-1"
    )
    ticket = Ticket.objects.get()
    assert artifact["already_applied"] is True
    assert artifact["reason"] == "completed"
    assert again.startswith(f"Ticket {ticket.reference} is there already: “Box crushed”.")
    assert (ticket.reference in text, ticket.body) == (True, "")


def test_a_replay_of_the_same_call_returns_the_first_result_as_new(context: Context) -> None:
    call = context()
    first = ticket_create(call, subject="Box crushed")
    assert ticket_create(call, subject="Box crushed") == first
    assert first[1]["already_applied"] is False
    assert Ticket.objects.count() == 1


def test_a_replay_gives_the_ticket_of_its_call_before_one_that_means_the_same(
    context: Context,
) -> None:
    call = context()
    first, _ = ticket_create(call, subject="Box crushed")
    ticket_create(context(), subject="Box wet")
    again, artifact = ticket_create(call, subject="Box wet")
    assert (again, artifact["already_applied"], Ticket.objects.count()) == (first, False, 2)


def test_a_reference_that_is_taken_is_minted_anew(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    minted = iter(["TCK-A", "TCK-A", "TCK-B"])
    monkeypatch.setattr(services, "ticket_reference", lambda: next(minted))
    ticket_create(context(), subject="Box crushed")
    text, artifact = ticket_create(context(), subject="Box wet")
    assert text == "Ticket TCK-B was opened: “Box wet”."
    assert artifact["already_applied"] is False
    assert sorted(Ticket.objects.values_list("reference", flat=True)) == ["TCK-A", "TCK-B"]


def test_a_ticket_that_another_worker_opened_meanwhile_is_the_answer(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one commits between the look before and the insert."""

    def fence() -> bool:
        ticket_create(context(), subject="Box crushed")
        return False

    text, artifact = ticket_create(context(fence=fence), subject="Box crushed")
    ticket = Ticket.objects.get()
    assert text.startswith(f"Ticket {ticket.reference} is there already")
    assert artifact["already_applied"] is True


def test_a_ticket_takes_one_look_one_insert_and_its_entry_in_the_audit(context: Context) -> None:
    with CaptureQueriesContext(connection) as sent:
        ticket_create(context(), subject="Box crushed")
    said = [query["sql"].split()[0] for query in sent.captured_queries]
    assert [word for word in said if word in ("SELECT", "INSERT", "UPDATE")] == [
        "SELECT",
        "INSERT",
        "INSERT",
    ]


def test_another_subject_payment_or_conversation_is_another_ticket(context: Context) -> None:
    ticket_create(context(), subject="Box crushed")
    ticket_create(context(), subject="Box crushed", payment="PAY-1")
    ticket_create(context(), subject="Box lost")
    ticket_create(context(conversation_id=uuid4()), subject="Box crushed")
    assert Ticket.objects.count() == 4


@pytest.mark.parametrize(
    ("subject", "stored"),
    [
        ("Help\r\nBcc: all@example.com", "Help Bcc: all@example.com"),
        ("Help\nme\rnow", "Help me now"),
        ("one\u2028two\u2029three\u0085four\x0bfive\x0csix\x1cseven", None),
        ("  wide \u00a0\u3000 gap\t", "wide gap"),
        ("rtl\u202eoverride\u200b", "rtloverride"),
        ("null\x00byte", "null byte"),
        ("half \ud83d pair", "half pair"),
        ("x" * 200, "x" * 200),
        ("Größe 👩\u200d👧 ok", "Größe 👩\u200d👧 ok"),
    ],
)
def test_b40_a_subject_is_made_one_line(context: Context, subject: str, stored: str | None) -> None:
    _, artifact = ticket_create(context(), subject=subject)
    assert artifact["code"] == "ticket.created"
    assert Ticket.objects.get().subject == (stored or "one two three four five six seven")


@pytest.mark.parametrize(
    ("subject", "sentence"),
    [
        ("", NO_SUBJECT),
        (" \t\n ", NO_SUBJECT),
        ("\u2028\u200b\u00a0", NO_SUBJECT),
        ("\u200d", NO_SUBJECT),
        (
            "x" * 300,
            (
                "The subject has 300 characters; 200 are the most. Put the rest into the text. "
                "No ticket was opened."
            ),
        ),
    ],
)
def test_b40_a_subject_that_is_none_is_refused_plainly(
    context: Context, subject: str, sentence: str
) -> None:
    text, artifact = ticket_create(context(), subject=subject)
    assert text == sentence
    assert (artifact["reason"], artifact["code"]) == ("transient", "ticket.invalid")
    assert Ticket.objects.count() == 0


def test_b40_five_tickets_of_which_the_third_is_bad_stay_four_after_a_retry(
    context: Context,
) -> None:
    calls = [
        (context(), subject)
        for subject in ("one", "two\r\nBcc: x@example.com", " ", "four", "five")
    ]
    rounds = [
        [ticket_create(call, subject=subject) for call, subject in calls] for _round in range(3)
    ]
    assert rounds[0] == rounds[1] == rounds[2]
    assert [artifact["reason"] for _text, artifact in rounds[0]] == [
        "completed",
        "completed",
        "transient",
        "completed",
        "completed",
    ]
    assert Ticket.objects.count() == 4


@pytest.mark.parametrize("odd", [None, 7, ["a"], {"a": 1}])
def test_arguments_that_are_no_text_are_refused(context: Context, odd: Any) -> None:
    for given in (
        {"subject": odd},
        {"subject": "a", "body": odd},
        {"subject": "a", "payment": odd},
    ):
        _, artifact = ticket_create(context(), **given)
        assert (artifact["reason"], artifact["code"]) == ("transient", "ticket.invalid")
    assert Ticket.objects.count() == 0


def test_a_text_that_is_too_long_is_refused(context: Context) -> None:
    text, artifact = ticket_create(context(), subject="a", body="x" * 10_001)
    assert text == "The text has 10001 characters; 10000 are the most. No ticket was opened."
    assert artifact["code"] == "ticket.invalid"
    assert Ticket.objects.count() == 0


def test_a_payment_that_is_not_found_opens_nothing(context: Context) -> None:
    text, artifact = ticket_create(context(), subject="Box crushed", payment="PAY-2")
    assert text == (
        "Nothing was found under “PAY-2” for the customer of this conversation. "
        "Please check the reference, or find the customer first."
    )
    assert (artifact["reason"], artifact["code"]) == ("transient", "payment.not_found")
    _, artifact = ticket_create(context(), subject="Box crushed", payment="P" * 61)
    assert artifact["code"] == "payment.not_found"
    assert Ticket.objects.count() == 0


def test_without_a_resolver_the_reference_is_kept_as_text(context: Context, settings: Any) -> None:
    settings.TICKET_PAYMENT_RESOLVER = ""
    ticket_create(context(), subject="Box crushed", payment=" PAY-2\n")
    ticket = Ticket.objects.get()
    assert (ticket.payment_reference, ticket.payment_id) == ("PAY-2", None)


def test_b41_script_is_stored_literally(context: Context) -> None:
    evil = "<script>alert(1)</script> [x](JaVa\tScript:alert(1))"
    text, _ = ticket_create(context(), subject=evil, body="<svg onload=alert(1)>")
    ticket = Ticket.objects.get()
    assert ticket.subject == "<script>alert(1)</script> [x](JaVa Script:alert(1))"
    assert ticket.body == "<svg onload=alert(1)>"
    assert "<script>alert(1)</script>" in text
    assert "&lt;" not in text


def test_a_worker_that_lost_its_run_opens_nothing(context: Context) -> None:
    def fence() -> None:
        raise StaleAttempt

    with pytest.raises(StaleAttempt):
        ticket_create(context(fence=fence), subject="Box crushed")
    assert Ticket.objects.count() == 0


def test_a_member_of_several_teams_keeps_the_ticket_to_themselves(
    context: Context, ana: User
) -> None:
    ticket_create(context(team_ids=frozenset({TEAM, OTHER_TEAM})), subject="Box crushed")
    assert list(tickets_for(ana)) == [Ticket.objects.get()]
    assert list(tickets_for(person("leo"))) == []


def test_tickets_are_found_within_the_team_only(context: Context, ana: User) -> None:
    ticket_create(context(), subject="Box crushed")
    ticket = Ticket.objects.get()
    leo, olga = person("leo"), person("olga", team=OTHER_TEAM)
    boss = person("boss", team=OTHER_TEAM, is_superuser=True)
    for user in (ana, leo, boss):
        assert ticket_for(user, ticket.reference.lower()) == ticket
    texts = set()
    for user, reference in ((olga, ticket.reference), (leo, "TCK-NONE")):
        with pytest.raises(NotFound) as refused:
            ticket_for(user, reference)
        texts.add(str(refused.value))
    assert texts == {"There is no such ticket."}


def test_a_ticket_moves_only_where_its_state_lets_it(context: Context, ana: User) -> None:
    ticket_create(context(), subject="Box crushed")
    ticket = Ticket.objects.get()
    assert ticket_move(ticket=ticket, actor=ana, to=State.CLOSED).state == "closed"
    with pytest.raises(MoveRefused):
        ticket_move(ticket=ticket, actor=ana, to=State.PENDING)
    assert ticket_move(ticket=ticket, actor=ana, to=State.OPEN).state == "open"
    said = Entry.objects.filter(subject_id=str(ticket.pk)).order_by("id")
    assert [(row.action, row.actor_kind, row.before, row.after) for row in said] == [
        ("ticket.opened", "assistant", {}, {}),
        ("ticket.moved", "person", {"state": "open"}, {"state": "closed"}),
        ("ticket.moved", "person", {"state": "closed"}, {"state": "open"}),
    ]


def test_a_note_has_a_text(context: Context, ana: User) -> None:
    ticket_create(context(), subject="Box crushed")
    ticket = Ticket.objects.get()
    with pytest.raises(TicketRefused, match=r"A note needs a text."):
        note_add(ticket=ticket, author=ana, text=" \u2028 ")
    assert note_add(ticket=ticket, author=ana, text="a\r\nb").text == "a\nb"


def test_the_database_refuses_a_second_line_in_a_subject(context: Context) -> None:
    ticket_create(context(), subject="Box crushed")
    for subject in ("a\nb", "a\rb", "a\u2028b", "a\u0085b", ""):
        with pytest.raises(IntegrityError, match="ticket_subject_one_line"), transaction.atomic():
            Ticket.objects.update(subject=subject)
    assert Ticket.objects.update(subject="Grüße x7f u0085 ok") == 1


def test_the_right_allows_and_its_lack_blocks() -> None:
    (tool,) = TOOLS
    asked: dict[str, Any] = {"tool": tool.name, "arguments": {}, "customer_id": None}
    allowed = Proposal(rights=frozenset({"tickets.add_ticket"}), **asked)
    blocked = Proposal(rights=frozenset({"knowledge.view_article"}), **asked)
    assert verdict_of(tool.policies, allowed, {}).kind == "allow"
    verdict = verdict_of(tool.policies, blocked, {})
    assert (verdict.kind, verdict.rule) == ("block", "right.missing")
    assert verdict.text == "Your role does not open tickets. No ticket was opened."


def test_the_identity_of_a_call_ignores_spelling(context: Context) -> None:
    (tool,) = TOOLS
    assert tool.identity is not None
    first = tool.identity(context(), {"subject": "Box  crushed!", "payment": "PAY-1"})
    assert first == tool.identity(context(), {"subject": "box crushed", "payment": " pay-1"})
    assert first != tool.identity(context(), {"subject": "box crushed"})


def test_the_artifact_is_one_the_program_reads(context: Context) -> None:
    outcome = outcome_read(ticket_create(context(), subject="Box crushed")[1])
    assert outcome is not None
    assert (outcome.reason, outcome.stop) == ("completed", True)


def test_stored_names_do_not_move() -> None:
    assert State.values == ["open", "pending", "closed"]
    assert Priority.values == ["low", "normal", "high"]
    assert set(TRANSITIONS) == set(State)
    assert frozenset() == FINAL


def test_a_payment_named_with_or_without_its_prefix_is_the_same_wish() -> None:
    spelled = {
        ticket_identity("Late box", payment) for payment in ("PAY-10011", "pay-10011", "10011")
    }
    assert len(spelled) == 1
    assert ticket_identity("Late box", "PAY-10012") not in spelled
