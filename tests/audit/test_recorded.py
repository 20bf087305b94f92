"""What is recorded, by whom and from where: in the transaction of what it records, masked."""

from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import transaction
from django.test import Client
from django.urls import reverse

from payments.errors import PauseRefused, RefundAboveLeft
from payments.models import Intent, Team
from payments.services import refund_make, refunds_stop
from reviews.audit.models import Entry
from reviews.audit.origin import Origin, origin_of
from reviews.audit.services import Subject, assistant_for, audit_write, person, task
from reviews.audit.words import Action, OriginKind
from reviews.errors import FourEyes, ReviewRefused
from reviews.services import review_approve, review_raise, review_reject, reviews_expire
from reviews.states import Channel
from tests.payments.cast import Desk
from tests.payments.conftest import desk, ledger, processor, processor_process
from tests.reviews import fakes
from tests.reviews.conftest import Ask, ana, ask, lea, leo

__all__ = ["ana", "ask", "desk", "lea", "ledger", "leo", "processor", "processor_process"]

pytestmark = pytest.mark.django_db

CARD = "4242 4242 4242 4242"


@pytest.fixture
def wired(settings: Any) -> None:
    """Name the reviews' stand-ins where the settings name the other apps."""
    settings.RUN_SCOPE = "tests.reviews.fakes.scope_of"
    settings.REVIEW_DECIDED = "tests.reviews.fakes.decided"
    settings.REVIEW_SUBJECTS = {"refund": "tests.reviews.fakes.FakeSubject"}
    fakes.reset()


def actions(**where: Any) -> list[str]:
    """Return what was recorded, oldest first."""
    return list(Entry.objects.filter(**where).order_by("id").values_list("action", flat=True))


# The row itself


def test_a_row_names_the_account_behind_an_assistant_and_masks_what_was_typed() -> None:
    user = User.objects.create_user("ana")
    audit_write(
        Action.INTENT_REFUSED,
        actor=assistant_for(user.pk),
        subject=Subject("refund", uuid4(), f"card {CARD}"),
        before={"note": [f"paid with {CARD}"]},
        after={"by": {CARD: 1}, "amount_minor": 2500, "gone": None},
    )
    row = Entry.objects.get()
    assert (row.actor_kind, row.actor_id, row.actor_name) == ("assistant", user.pk, "ana")
    kept = f"{row.reference}{row.before}{row.after}"
    assert CARD not in kept
    assert (row.after["amount_minor"], row.after["gone"]) == (2500, None)


def test_a_row_costs_one_statement(django_assert_num_queries: Any) -> None:
    user = User.objects.create_user("ana")
    with transaction.atomic(), django_assert_num_queries(1):
        audit_write(Action.REVIEW_USED, actor=assistant_for(user.pk), subject=Subject("review"))


def test_a_row_says_where_it_came_from() -> None:
    audit_write(Action.REVIEW_EXPIRED, actor=task("beat"), subject=Subject("review"))
    with origin_of(Origin(OriginKind.WEB, "2001:db8::1")):
        audit_write(Action.REVIEW_EXPIRED, actor=task("beat"), subject=Subject("review"))
    rows = Entry.objects.order_by("id").values_list("origin", "address")
    assert list(rows) == [("task", None), ("web", "2001:db8::1")]


# Reviews


@pytest.mark.usefixtures("wired")
def test_a_review_is_recorded_from_its_asking_to_its_end(ask: Ask, lea: User) -> None:
    review = ask()
    review_approve(
        review_id=review.pk, actor=lea, channel=Channel.DESK, changes={"amount": "20.00"}
    )
    asked, changed = Entry.objects.filter(subject_id=str(review.pk)).order_by("id")
    assert (asked.action, asked.actor_kind, asked.actor_name) == (
        "review.proposed",
        "assistant",
        "ana",
    )
    assert (changed.action, changed.actor_kind, changed.actor_name) == (
        "review.changed",
        "person",
        "lea",
    )
    assert (changed.before["amount_minor"], changed.before["state"]) == (2500, "pending")
    assert (changed.after["amount_minor"], changed.after["state"]) == (2000, "approved")
    assert (changed.run_id, changed.call_id) == (review.run_id, review.call_id)


@pytest.mark.usefixtures("wired")
def test_every_way_to_end_a_review_has_its_word(ask: Ask, ana: User, lea: User, leo: User) -> None:
    one, two, three = ask(), ask(), ask()
    review_approve(review_id=one.pk, actor=lea, channel=Channel.DESK)
    review_raise(review_id=two.pk, actor=lea, channel=Channel.DESK, changes={"amount": "30.00"})
    review_reject(review_id=two.pk, actor=leo, channel=Channel.DESK, sentence="No.")
    type(three).objects.filter(pk=three.pk).update(expires_at=three.created_at)
    assert reviews_expire() == 1
    assert actions(subject_id=str(one.pk))[1:] == ["review.approved"]
    assert actions(subject_id=str(two.pk))[1:] == ["review.raised", "review.rejected"]
    assert actions(subject_id=str(three.pk))[1:] == ["review.expired"]
    expired = Entry.objects.get(action="review.expired")
    assert (expired.actor_kind, expired.actor_name) == ("task", "reviews.reviews_expire")


@pytest.mark.usefixtures("wired")
def test_a_refused_try_outlives_what_it_rolled_back(ask: Ask, ana: User, lea: User) -> None:
    review = ask()
    with pytest.raises(FourEyes):
        review_approve(review_id=review.pk, actor=ana, channel=Channel.CHAT)
    assert review.subject_id
    fakes.LEFT[review.subject_id] = 100
    with pytest.raises(ReviewRefused):
        review_approve(review_id=review.pk, actor=lea, channel=Channel.DESK)
    with pytest.raises(ReviewRefused):
        review_approve(review_id=review.pk, actor=lea, channel=Channel.DESK, version=7)
    refused = Entry.objects.filter(action="review.refused").order_by("id")
    assert list(refused.values_list("actor_name", "rule")) == [
        ("ana", "review.four_eyes"),
        ("lea", "review.stale"),
        ("lea", "review.changed"),
    ]
    assert actions(action="review.approved") == []


@pytest.mark.usefixtures("wired")
def test_looking_at_a_review_in_the_administration_is_recorded(ask: Ask, lea: User) -> None:
    review = ask()
    client = Client(REMOTE_ADDR="192.0.2.7")
    client.force_login(lea)
    page = reverse("admin:reviews_review_change", args=[review.pk])
    assert client.get(page).status_code == 200
    assert client.get(page.replace(str(review.pk), str(uuid4()))).status_code == 404
    viewed, denied = Entry.objects.filter(subject_kind="review").order_by("id")[1:]
    assert (viewed.action, viewed.actor_name, viewed.after["version"]) == (
        "review.viewed",
        "lea",
        1,
    )
    assert (viewed.origin, viewed.address) == ("admin", "192.0.2.7")
    assert denied.action == "review.denied"


# Money


@pytest.mark.django_db(transaction=True)
def test_a_refund_is_recorded_from_its_row_to_its_end(desk: Desk) -> None:
    context, review_id = desk.context(), desk.approved(desk.payment, 2500)
    refund_make(
        context=context,
        payment_id=desk.payment.pk,
        amount_minor=2500,
        currency="EUR",
        review_id=review_id,
    )
    intent = Intent.objects.get()
    rows = Entry.objects.filter(subject_id=str(intent.pk)).order_by("id")
    assert [row.action for row in rows] == ["intent.begun", "intent.sent", "intent.succeeded"]
    begun, _sent, ended = rows
    assert (begun.actor_kind, begun.actor_name) == ("assistant", desk.ana.username)
    assert (begun.reference, begun.after["review"]) == (desk.payment.reference, str(review_id))
    assert (ended.before["state"], ended.after["state"]) == ("open", "succeeded")
    assert {row.call_id for row in rows} == {context.call_id}
    assert actions(subject_id=str(review_id)) == ["review.used"]


@pytest.mark.django_db(transaction=True)
def test_what_the_ledger_refuses_is_recorded_and_uses_nothing_up(desk: Desk) -> None:
    review_id = desk.approved(desk.payment, 20_000)
    with pytest.raises(RefundAboveLeft):
        refund_make(
            context=desk.context(),
            payment_id=desk.payment.pk,
            amount_minor=20_000,
            currency="EUR",
            review_id=review_id,
        )
    (row,) = Entry.objects.all()
    assert (row.action, row.rule, row.subject_id) == (
        "intent.refused",
        "refund.above_left",
        str(desk.payment.pk),
    )
    assert row.after == {"amount_minor": 20_000, "currency": "EUR", "review": str(review_id)}


def test_a_refused_and_a_made_pause_are_recorded() -> None:
    tom = User.objects.create_user("tom")
    olga = User.objects.create_superuser("olga")
    with pytest.raises(PauseRefused):
        refunds_stop(actor=tom, reason="because")
    refunds_stop(actor=olga, reason="wrong prices")
    refused, paused = Entry.objects.order_by("id")
    assert (refused.action, refused.actor_name) == ("refunds.refused", "tom")
    assert (paused.action, paused.before, paused.after) == (
        "refunds.paused",
        {"paused": False},
        {"paused": True, "reason": "wrong prices"},
    )


# Accounts and the administration


def test_signing_in_and_failing_to_are_recorded_without_the_password(client: Client) -> None:
    User.objects.create_user("ana", password="right-one")
    for password in ("wrong-one", "right-one"):
        client.post("/login/", {"username": "ana", "password": password})
    client.post("/logout/")
    rows = Entry.objects.order_by("id")
    assert [(row.action, row.actor_kind, row.reference) for row in rows] == [
        ("session.refused", "unknown", "ana"),
        ("session.begun", "person", "ana"),
        ("session.ended", "person", "ana"),
    ]
    assert {(row.origin, row.address) for row in rows} == {("web", "127.0.0.1")}
    assert "-one" not in str(list(rows.values()))


def test_a_change_of_rights_is_recorded_with_what_was_there_before(admin_client: Client) -> None:
    agents, leads = Group.objects.create(name="agents"), Group.objects.create(name="leads")
    tom = User.objects.create_user("tom")
    tom.groups.add(agents)
    before = Entry.objects.count()
    page = reverse("admin:auth_user_change", args=[tom.pk])
    answer = admin_client.post(
        page,
        {
            "username": "tom",
            "groups": [leads.pk],
            "is_staff": "on",
            "is_active": "on",
            "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00:00",
        },
    )
    assert answer.status_code == 302
    (row,) = Entry.objects.filter(subject_kind="auth.user")
    assert (row.action, row.reference, row.origin) == ("record.changed", "tom", "admin")
    assert (row.before["groups"], row.after["groups"]) == (["agents"], ["leads"])
    assert (row.before["is_staff"], row.after["is_staff"]) == (False, True)
    assert before + 1 == Entry.objects.count()


def test_new_and_deleted_rows_and_a_new_password_are_recorded(admin_client: Client) -> None:
    admin_client.post(reverse("admin:payments_team_add"), {"name": "North", "members": []})
    team = Team.objects.get()
    tom = User.objects.create_user("tom")
    new = {"password1": "quite-secret-9", "password2": "quite-secret-9"}
    admin_client.post(reverse("admin:auth_user_password_change", args=[tom.pk]), new)
    admin_client.post(reverse("admin:auth_user_delete", args=[tom.pk]), {"post": "yes"})
    rows = Entry.objects.filter(subject_kind__in=("payments.team", "auth.user")).order_by("id")
    assert [(row.action, row.reference) for row in rows] == [
        ("record.added", str(team)),
        ("record.changed", "tom"),
        ("record.deleted", "tom"),
    ]
    assert "quite-secret-9" not in str(list(rows.values()))


def test_giving_a_role_its_rights_is_recorded_once() -> None:
    for _again in range(2):
        call_command("roles_setup", stdout=StringIO())
    given = Entry.objects.filter(action="role.given")
    assert given.count() == Group.objects.count()
    assert "view_entry" in given.get(reference="Auditors").after["given"]


# Who reads it


@pytest.fixture
def auditor() -> Client:
    """Return a browser of somebody with the role and nothing else, in no team."""
    call_command("roles_setup", stdout=StringIO())
    user = User.objects.create_user("otto", is_staff=True)
    user.groups.add(Group.objects.get(name="Auditors"))
    client = Client()
    client.force_login(user)
    return client


LISTS = (
    "audit_entry",
    "auth_group",
    "auth_user",
    "exports_export",
    "knowledge_article",
    "payments_customer",
    "payments_intent",
    "payments_invoice",
    "payments_payment",
    "payments_paymentmethod",
    "payments_refund",
    "payments_team",
    "reviews_review",
    "runs_conversation",
    "runs_run",
    "tickets_ticket",
)


@pytest.mark.parametrize("name", LISTS)
def test_an_auditor_sees_every_list_and_can_add_nothing(auditor: Client, name: str) -> None:
    assert auditor.get(reverse(f"admin:{name}_changelist")).status_code == 200
    assert auditor.get(reverse(f"admin:{name}_add")).status_code == 403


@pytest.mark.usefixtures("wired")
def test_an_auditor_sees_the_reviews_and_money_of_all_teams_and_decides_nothing(
    auditor: Client, ask: Ask
) -> None:
    review, other = ask(), Desk()
    page = reverse("admin:reviews_review_change", args=[review.pk])
    answer = auditor.get(page)
    assert (answer.status_code, b"Approve" in answer.content) == (200, False)
    assert auditor.post(f"{page}decide/approve/".replace("change/", "")).status_code == 403
    paid = reverse("admin:payments_payment_change", args=[other.payment.pk])
    assert other.payment.reference in auditor.get(paid).content.decode()
    assert auditor.post(paid, {"amount_minor": 1}).status_code == 403
    review.refresh_from_db()
    assert review.state == "pending"


def test_the_list_is_filtered_and_searched_and_nobody_changes_it(auditor: Client) -> None:
    lea = User.objects.create_user("lea")
    audit_write(Action.REVIEW_APPROVED, actor=person(lea), subject=Subject("review", 1, "Refund A"))
    audit_write(Action.REVIEW_REJECTED, actor=person(lea), subject=Subject("review", 2, "Refund B"))
    page = reverse("admin:audit_entry_changelist")
    found = auditor.get(page, {"q": "lea", "action__exact": "review.approved"}).content.decode()
    assert ("Refund A" in found, "Refund B" in found) == (True, False)
    row = Entry.objects.get(action="review.approved")
    one = reverse("admin:audit_entry_change", args=[row.pk])
    assert auditor.get(one).status_code == 200
    boss = Client()
    boss.force_login(User.objects.create_superuser("boss"))
    for browser in (auditor, boss):
        assert browser.post(one, {"rule": "x"}).status_code == 403
        assert browser.post(one.replace("change", "delete"), {"post": "yes"}).status_code == 403
    assert Entry.objects.get(pk=row.pk).rule == ""


def test_without_the_right_there_is_no_audit() -> None:
    client = Client()
    client.force_login(User.objects.create_user("tom", is_staff=True))
    assert client.get(reverse("admin:audit_entry_changelist")).status_code == 403
