"""The roles outside the demo: one command makes them, again and again, and takes nothing away."""

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import CommandError, call_command

from payments.roles import ROLES

AGENT = {
    "payments.view_customer",
    "knowledge.view_article",
    "payments.request_charge",
    "payments.request_refund",
    "tickets.add_ticket",
    "exports.add_export",
}
LEAD = AGENT | {
    "reviews.view_review",
    "reviews.decide_review",
    "runs.view_all_runs",
    "payments.view_intent",
    "payments.view_decline_code",
}
ADMINISTRATOR = LEAD | {
    "payments.view_team",
    "payments.view_paymentmethod",
    "payments.view_invoice",
    "payments.view_payment",
    "payments.view_refund",
    "payments.view_intent",
    "tickets.view_ticket",
    "runs.measure_runs",
    "runs.operate",
    "payments.pause_refunds",
    "payments.view_pause",
    "processor.view_processorevent",
    "processor.view_reconciliation",
    "receipts.view_document",
}
TRAINEE = {"payments.view_customer", "knowledge.view_article", "reviews.view_review"}
AUDITOR = {
    "audit.view_entry",
    "auth.view_group",
    "auth.view_user",
    "exports.view_export",
    "knowledge.view_article",
    "payments.view_customer",
    "payments.view_intent",
    "payments.view_invoice",
    "payments.view_payment",
    "payments.view_paymentmethod",
    "payments.view_refund",
    "payments.view_team",
    "payments.view_pause",
    "processor.view_processorevent",
    "processor.view_reconciliation",
    "receipts.view_document",
    "reviews.view_review",
    "runs.view_call",
    "runs.view_conversation",
    "runs.view_modelcall",
    "runs.view_run",
    "runs.view_stoprecord",
    "tickets.view_note",
    "tickets.view_ticket",
}


def said() -> list[str]:
    """Run the command and return its lines."""
    out = StringIO()
    call_command("roles_setup", stdout=out)
    return out.getvalue().splitlines()


def rights(role: str) -> set[str]:
    """Return what a role may do, from the database."""
    found = Group.objects.get(name=role).permissions.values_list(
        "content_type__app_label", "codename"
    )
    return {f"{app}.{codename}" for app, codename in found}


@pytest.fixture
def outside_the_demo(db: None, settings: Any) -> None:
    """Leave the demo: roles are for every deployment."""
    settings.DEMO = False


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("Support agents", AGENT),
        ("Team leads", LEAD),
        ("Administrators", ADMINISTRATOR),
        ("Trainees", TRAINEE),
        ("Auditors", AUDITOR),
    ],
)
def test_each_role_is_made_with_exactly_its_rights(
    outside_the_demo: None, role: str, expected: set[str]
) -> None:
    said()
    assert rights(role) == expected
    assert set(Group.objects.values_list("name", flat=True)) == set(ROLES)


def test_each_role_gets_one_line_and_a_second_run_changes_nothing(outside_the_demo: None) -> None:
    assert said() == [
        "Support agents: 6 rights, 6 of them new.",
        "Team leads: 11 rights, 11 of them new.",
        "Administrators: 24 rights, 24 of them new.",
        "Trainees: 3 rights, 3 of them new.",
        "Auditors: 24 rights, 24 of them new.",
    ]
    before = {role: rights(role) for role in ROLES}
    groups = list(Group.objects.order_by("pk").values())
    assert said() == [
        "Support agents: 6 rights, 0 of them new.",
        "Team leads: 11 rights, 0 of them new.",
        "Administrators: 24 rights, 0 of them new.",
        "Trainees: 3 rights, 0 of them new.",
        "Auditors: 24 rights, 0 of them new.",
    ]
    assert {role: rights(role) for role in ROLES} == before
    assert list(Group.objects.order_by("pk").values()) == groups


def test_a_role_gets_back_what_it_lacks_and_keeps_what_was_added_by_hand(
    outside_the_demo: None,
) -> None:
    said()
    trainees = Group.objects.get(name="Trainees")
    by_name = {right.codename: right for right in Permission.objects.all()}
    trainees.permissions.remove(by_name["view_article"])
    trainees.permissions.add(by_name["view_ticket"])
    assert said()[3] == (
        "Trainees: 3 rights, 1 of them new; 1 more, added by hand, left as they are."
    )
    assert rights("Trainees") == TRAINEE | {"tickets.view_ticket"}


def test_other_groups_are_left_alone(outside_the_demo: None) -> None:
    treasurers = Group.objects.create(name="Treasurers")
    treasurers.permissions.add(Permission.objects.get(codename="view_intent"))
    said()
    assert rights("Treasurers") == {"payments.view_intent"}


def test_without_a_right_that_a_role_names_no_role_is_touched(outside_the_demo: None) -> None:
    Permission.objects.get(codename="decide_review").delete()
    with pytest.raises(CommandError) as refused:
        said()
    assert str(refused.value) == (
        "These rights are not installed: reviews.decide_review. Run migrate first. "
        "No role was changed."
    )
    assert not Group.objects.exists()


def test_the_sample_data_makes_the_same_roles_and_refuses_without_their_rights(db: None) -> None:
    Permission.objects.get(codename="decide_review").delete()
    with pytest.raises(CommandError, match=r"not installed: reviews\.decide_review"):
        call_command("sample_data", verbosity=0)
    assert not Group.objects.exists()
