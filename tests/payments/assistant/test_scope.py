"""Another team's customer is not found, whoever asks how (B52), and a conversation has one."""

import logging

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from payments.models import Customer, Intent, Payment, Team
from payments.selectors import scope_of
from tests.payments.assistant.stage import Conversation

OTHER = "other-team@example.com"
# (key of the other team, a key that does not exist, of the same shape)
KEYS = [
    (OTHER, "no-one-at-all@example.com"),
    ("CUS-1007", "CUS-9997"),
    ("PAY-10071", "PAY-99971"),
    ("INV-1007", "INV-9997"),
    ("Oscar Ferreira", "Oscar Ferrerira"),
]


@pytest.mark.parametrize(("key", "missing"), KEYS)
def test_another_teams_customer_reads_like_a_missing_one(
    talk: Conversation, caplog: pytest.LogCaptureFixture, key: str, missing: str
) -> None:
    talk.say(f"find {key}")
    with CaptureQueriesContext(connection) as there, caplog.at_level(logging.WARNING):
        content, artifact = talk.run("customer_find", key=key)
    denied = [record for record in caplog.records if record.message == "scope.denied"]
    with CaptureQueriesContext(connection) as nowhere:
        content_missing, artifact_missing = Conversation(talk.user, [f"find {missing}"]).run(
            "customer_find", key=missing
        )
    assert content.replace(key, "…") == content_missing.replace(missing, "…")
    assert artifact == artifact_missing
    assert (artifact["reason"], artifact["code"]) == ("transient", "customer.not_found")
    assert len(there.captured_queries) == len(nowhere.captured_queries)
    # What looks for the log alone must not stop at the first hit: that is what takes less time.
    for queries in (there.captured_queries, nowhere.captured_queries):
        unscoped = [query["sql"] for query in queries if '"team_id" IN' not in query["sql"]]
        audit = [sql for sql in unscoped if 'FROM "payments_customer"' in sql]
        assert audit
        assert [sql for sql in audit if "LIMIT" in sql] == []
    assert talk.customer_id is None
    if "Oscar" not in key:
        assert [record.__dict__["asker"] for record in denied] == [talk.user.pk]


@pytest.mark.parametrize("key", [OTHER, "CUS-1007", "PAY-10071"])
def test_another_teams_payments_are_not_listed(talk: Conversation, key: str) -> None:
    content, artifact = talk.say(f"list {key}").run("payments_list", customer=key, period="")
    assert artifact["code"] == "customer.not_found"
    assert "Oscar" not in content
    assert "85.00" not in content


@pytest.mark.parametrize("reference", ["PAY-10071", "PAY-10021", "PAY-1001X", ""])
def test_the_model_cannot_refund_what_is_not_this_customers(
    talk: Conversation, caplog: pytest.LogCaptureFixture, reference: str
) -> None:
    """Another team's, another customer's of the own team, a typo, nothing: one and the same."""
    talk.say("refund the last payment of good-card@example.com").about("good-card@example.com")
    gated = talk.gated("refund_request", payment=reference, amount="1.00")
    assert (gated.record.verdict, gated.record.rule) == ("allow", "not_found")
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        content, artifact = talk.run("refund_request", payment=reference, amount="1.00")
    assert content == (
        f"Nothing was found under “{reference}” for the customer of this conversation. "
        "Please check the reference, or find the customer first."
    )
    assert (artifact["reason"], artifact["code"]) == ("transient", "payment.not_found")
    assert artifact["data"] == {}
    denied = [record for record in caplog.records if record.message == "scope.denied"]
    assert len(denied) == (1 if reference in ("PAY-10071", "PAY-10021") else 0)
    assert not Intent.objects.exists()


@pytest.mark.parametrize("reference", ["INV-1007", "INV-1002", "INV-9999"])
def test_the_model_cannot_charge_what_is_not_this_customers(
    talk: Conversation, reference: str
) -> None:
    talk.say(f"charge {reference}").about("good-card@example.com")
    content, artifact = talk.run("charge_invoice", invoice=reference)
    assert content.startswith(f"Nothing was found under “{reference}”")
    assert artifact["code"] == "payment.not_found"
    assert not Intent.objects.exists()


def test_words_that_name_two_customers_bind_none(talk: Conversation) -> None:
    talk.say("refund PAY-10011 and PAY-10021")
    assert talk.gated("refund_request", payment="PAY-10011").record.rule == "not_found"
    assert talk.customer_id is None


def test_a_key_in_the_words_binds_and_one_of_the_models_does_not(talk: Conversation) -> None:
    ana = Customer.objects.get(email="good-card@example.com")
    _content, artifact = talk.say("find the one with the visa").run("customer_find", key="CUS-1001")
    assert artifact["code"] == "customer.found"
    assert talk.customer_id is None
    assert talk.run("refund_request", payment="PAY-10011")[1]["code"] == "payment.not_found"
    talk.say("I mean good-card@example.com").run("customer_find", key="good-card@example.com")
    bound: tuple[object, str] = (talk.customer_id, talk.label)
    assert bound == (ana.pk, "Ana Silva (good-card@example.com)")


def test_a_name_binds_when_it_is_one_customers_alone(talk: Conversation) -> None:
    north = Team.objects.get(members=talk.user)
    Customer.objects.filter(email__endswith="ek@example.com").update(team=north)
    content, artifact = talk.say("what did Ek pay?").run("customer_find", key="Ek")
    assert artifact["code"] == "customer.several"
    assert "bjorn.ek@example.com" in content
    assert "bo.ek@example.com" in content
    assert talk.customer_id is None
    talk.say("Björn Ek").run("customer_find", key="Björn Ek")
    assert talk.customer_id == Customer.objects.get(email="bjorn.ek@example.com").pk


def test_another_customer_needs_another_conversation(talk: Conversation) -> None:
    talk.say("find good-card@example.com").about("good-card@example.com")
    for tool, name in (("customer_find", "key"), ("payments_list", "customer")):
        talk.say("now yen@example.com")
        content, artifact = talk.run(tool, None, **{name: "yen@example.com"})
        assert (artifact["reason"], artifact["code"]) == ("policy_block", "customer.other")
        assert content == (
            "This conversation is about Ana Silva (good-card@example.com). Please open another "
            "conversation for another customer."
        )
    assert talk.customer_id == Customer.objects.get(email="good-card@example.com").pk


def test_who_leaves_a_team_finds_its_customers_no_more(talk: Conversation) -> None:
    talk.say("refund PAY-10011").about("good-card@example.com")
    Team.objects.get(members=talk.user).members.remove(talk.user)
    assert scope_of(talk.user) == frozenset()
    assert talk.run("customer_find", key="good-card@example.com")[1]["code"] == (
        "customer.not_found"
    )
    assert talk.run("payments_list")[1]["code"] == "customer.unnamed"
    assert talk.run("refund_request", payment="PAY-10011")[1]["code"] == "payment.not_found"


def test_someone_inactive_sees_no_team(agent: User) -> None:
    assert len(scope_of(agent)) == 1
    agent.is_active = False
    assert scope_of(agent) == frozenset()


def test_a_name_with_script_stays_text(talk: Conversation) -> None:
    """The text is kept in full and on one line; what escapes it is the page that shows it (B41)."""
    hostile = "<script>alert(1)</script>\n[x](java\tscript:alert(2)) Ana"
    Customer.objects.filter(email="good-card@example.com").update(name=hostile)
    content, _artifact = talk.say("find good-card@example.com").run(
        "customer_find", key="good-card@example.com"
    )
    assert content.splitlines()[0] == (
        "<script>alert(1)</script> [x](java script:alert(2)) Ana, good-card@example.com, CUS-1001."
    )
    review = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    assert review.title == (
        "Refund 5.00 EUR to <script>alert(1)</script> [x](java script:alert(2)) Ana"
    )


def test_what_is_listed_names_references_and_what_is_left(talk: Conversation) -> None:
    content, artifact = talk.say("find good-card@example.com").run(
        "customer_find", key="good-card@example.com"
    )
    assert (artifact["reason"], artifact["stop"]) == ("completed", False)
    paid = {row.reference: row.paid_at.date() for row in Payment.objects.all()}
    lines = content.splitlines()
    assert lines[0] == "Ana Silva, good-card@example.com, CUS-1001."
    assert lines[1] == "Saved ways to pay: Visa ending in 4242."
    assert lines[2] == "Open invoices:"
    assert lines[3].startswith("- INV-1001, 25.00 EUR, due ")
    day = paid["PAY-10014"].isoformat()
    assert f"- PAY-10014, 60.00 EUR, {day}, Visa ending in 4242, 50.00 EUR left to refund" in lines


def test_a_period_narrows_the_list_and_an_unclear_one_is_asked_back(talk: Conversation) -> None:
    talk.say("what did good-card@example.com pay last month").about("good-card@example.com")
    content, artifact = talk.run("payments_list", period="last month")
    assert artifact["code"] == "payments.listed"
    assert "PAY-10011" in content
    assert "PAY-10012" in content
    assert "PAY-10013" not in content
    content, artifact = talk.run("payments_list", period="the other day")
    assert (artifact["reason"], artifact["code"]) == ("transient", "period.unclear")
    assert "the other day" in content


def test_a_refund_stands_under_its_payment_without_naming_it_again(talk: Conversation) -> None:
    content, _artifact = talk.about("good-card@example.com").run("payments_list")
    lines = content.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("- PAY-10014"))
    assert lines[at + 1].startswith("  - REF-10014, 10.00 EUR refunded on ")
    assert "PAY-" not in lines[at + 1]
