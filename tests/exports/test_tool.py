"""The tool: it starts the job and says so, in words that a customer could read."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.contract import RunContext, outcome_read
from agent_core.policy import Proposal, verdict_of
from agent_core.runs.models import Conversation
from exports.models import Export
from exports.policies import EXPORT_RIGHT, POLICIES
from exports.tools import TOOLS, export_identity, export_payments
from payments.models import Customer, Team
from tests.exports.conftest import payment_of

pytestmark = pytest.mark.django_db

HIDDEN = re.compile(r"[{}_]|[0-9a-f]{8}-[0-9a-f]{4}|transient|completed|export_")


@pytest.fixture
def context(ana: User, team: Team, conversation: Conversation) -> Any:
    def made(user: User = ana, **more: Any) -> RunContext:
        values: dict[str, Any] = {
            "run_id": uuid4(),
            "attempt": 1,
            "conversation_id": conversation.pk,
            "requester_id": user.pk,
            "requester_name": "Ana",
            "rights": frozenset({EXPORT_RIGHT}),
            "team_ids": frozenset({team.pk}),
            "call_id": uuid4(),
            **more,
        }
        return RunContext(**values)

    return made


def test_it_is_completed_at_once_and_names_the_reference(context: Any, customer: Customer) -> None:
    payment_of(customer)
    acting = context()
    content, artifact = export_payments(acting, period="March 2026")
    export = Export.objects.get()
    assert content == (
        f"Export {export.reference} is being prepared: Payments March 2026, CSV, 1 row. "
        "The file will appear here when it is ready."
    )
    assert artifact == {
        "v": 1,
        "reason": "completed",
        "stop": True,
        "code": "export.started",
        "already_applied": False,
        "data": {"export": str(export.pk), "total": 1},
    }
    assert (export.conversation_id, export.run_id) == (acting.conversation_id, acting.run_id)
    assert export.call_id == acting.call_id


def test_the_same_in_other_words_is_already_on_its_way(context: Any, customer: Customer) -> None:
    payment_of(customer)
    export_payments(context(), period="March 2026")
    content, artifact = export_payments(context(), period="2026-03-01 to 2026-03-31", format="CSV")
    export = Export.objects.get()
    assert artifact["already_applied"] is True
    assert artifact["data"]["export"] == str(export.pk)
    assert content.startswith(f"This export is already on its way as {export.reference}")


def test_a_replay_returns_the_first_result_word_for_word(context: Any, customer: Customer) -> None:
    payment_of(customer)
    acting = context()
    first = export_payments(acting, period="March 2026")
    payment_of(customer)
    assert export_payments(acting, period="March 2026") == first
    assert Export.objects.count() == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"period": "some time"}, "export.period_unclear"),
        ({"period": None}, "export.period_unclear"),
        ({"period": 2026}, "export.period_unclear"),
        ({"period": "2099"}, "export.period_unclear"),
        ({"period": "March 2026", "currency": "euro"}, "export.invalid"),
        ({"period": "March 2026", "kind": "passwords"}, "export.invalid"),
        ({"period": "March 2026", "format": "exe"}, "export.invalid"),
        ({"period": "March 2026", "format": ["csv"]}, "export.invalid"),
    ],
)
def test_what_is_not_clear_goes_back_to_the_model_and_starts_nothing(
    context: Any, customer: Customer, arguments: dict[str, Any], code: str
) -> None:
    payment_of(customer)
    content, artifact = export_payments(context(), **arguments)
    assert (artifact["reason"], artifact["stop"], artifact["code"]) == ("transient", False, code)
    assert content.endswith(".")
    assert not HIDDEN.search(content)
    assert Export.objects.count() == 0


def test_an_empty_period_is_said_and_ends_the_turn(context: Any) -> None:
    content, artifact = export_payments(context(), period="March 2026")
    assert content == "There are no payments in March 2026, so there is nothing to export."
    assert (artifact["reason"], artifact["stop"]) == ("completed", True)
    assert Export.objects.count() == 0


def test_a_right_that_was_withdrawn_is_a_policy_block(
    context: Any, tom: User, customer: Customer
) -> None:
    payment_of(customer)
    content, artifact = export_payments(context(tom), period="March 2026")
    assert (artifact["reason"], artifact["code"]) == ("policy_block", "right.missing")
    assert content == "Your role may not export. Nothing was exported."
    assert Export.objects.count() == 0


def test_the_text_shows_nothing_that_is_not_for_people(context: Any, customer: Customer) -> None:
    payment_of(customer)
    for _ in range(2):
        content, artifact = export_payments(context(), period="March 2026")
        assert not HIDDEN.search(content)
        assert outcome_read(artifact) is not None


def test_the_gate_allows_it_with_the_right_and_blocks_it_without() -> None:
    def verdict(rights: frozenset[str]) -> tuple[str, str]:
        proposal = Proposal(tool="export_payments", arguments={}, rights=rights, customer_id=None)
        found = verdict_of(POLICIES, proposal, {})
        return found.kind, found.rule

    assert verdict(frozenset({EXPORT_RIGHT})) == ("allow", "export.own_rows")
    assert verdict(frozenset({"payments.request_refund"})) == ("block", "right.missing")


def test_it_may_run_before_a_sibling_is_reviewed() -> None:
    [tool] = TOOLS
    assert (tool.name, tool.effect, tool.runs_before_review, tool.may_stop) == (
        "export_payments",
        True,
        True,
        True,
    )
    assert tool.right == EXPORT_RIGHT


def test_the_identity_is_of_what_is_meant_and_not_of_the_words(context: Any) -> None:
    this_year = str(timezone.localdate().year)
    acting = context()

    def identity(**arguments: Any) -> str:
        return export_identity(acting, arguments)

    assert identity(period="this year") == identity(
        period=f" {this_year} ", currency="", kind="Payment", format=".CSV"
    )
    others = [
        identity(period="last year"),
        identity(period="this year", currency="EUR"),
        identity(period="this year", kind="refunds"),
        identity(period="soon"),
        identity(period="later"),
        identity(),
    ]
    assert len({identity(period="this year"), *others}) == 7
