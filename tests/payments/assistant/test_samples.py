"""The demo's sample data: loads once, holds the known cast, and exists in the demo only."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.utils import timezone

from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team
from payments.samples.people import ordinary_people


@pytest.fixture
def samples(db: None) -> None:
    """Load all of the sample data."""
    call_command("sample_data", verbosity=0)


KNOWN = {
    "good-card@example.com": ("INV-1001", 2500, "EUR", "Team North"),
    "slow-committed@example.com": ("INV-1002", 3000, "EUR", "Team North"),
    "slow-lost@example.com": ("INV-1003", 3500, "EUR", "Team North"),
    "declined@example.com": ("INV-1004", 4000, "EUR", "Team North"),
    "disputed@example.com": ("INV-1005", 4500, "EUR", "Team North"),
    "yen@example.com": ("INV-1006", 9899, "JPY", "Team North"),
    "other-team@example.com": ("INV-1007", 5000, "EUR", "Team South"),
}


@pytest.mark.parametrize("email", KNOWN)
def test_each_known_customer_has_an_open_invoice_and_earlier_payments(
    samples: None, email: str
) -> None:
    customer = Customer.objects.get(email=email)
    invoice = Invoice.objects.get(customer=customer, state="open")
    found = (invoice.reference, invoice.amount_minor, invoice.currency, str(customer.team))
    assert found == KNOWN[email]
    assert PaymentMethod.objects.filter(customer=customer, is_default=True).count() == 1
    assert Payment.objects.filter(customer=customer, state="succeeded").count() >= 2


def test_a_hundred_ordinary_people_have_distinct_names_and_addresses(samples: None) -> None:
    people = ordinary_people()
    assert len(people) >= 100
    assert len({name for name, _mail in people}) == len({mail for _n, mail in people})
    assert Customer.objects.count() == len(people) + len(KNOWN)
    assert Customer.objects.filter(name="田中さくら").exists()


def test_the_accounts_have_their_roles_teams_and_the_demo_password(samples: None) -> None:
    north, south = Team.objects.get(name="Team North"), Team.objects.get(name="Team South")
    for name, role, teams in (
        ("agent", "Support agents", {north}),
        ("lead", "Team leads", {north}),
        ("lead2", "Team leads", {north}),
        ("trainee", "Trainees", {north}),
        ("south", "Support agents", {south}),
        ("admin", "Administrators", {north, south}),
    ):
        user = User.objects.get(username=name)
        assert user.check_password("demo")
        assert [group.name for group in user.groups.all()] == [role]
        assert set(Team.objects.filter(members=user)) == teams
        assert user.is_superuser is (name == "admin")


@pytest.mark.parametrize(
    ("name", "may", "may_not"),
    [
        ("agent", "payments.request_refund", "reviews.decide_review"),
        ("agent", "payments.request_charge", "reviews.view_review"),
        ("lead", "reviews.decide_review", "payments.change_payment"),
        ("trainee", "payments.view_customer", "payments.request_refund"),
        ("trainee", "reviews.view_review", "reviews.decide_review"),
    ],
)
def test_rights_follow_the_role(samples: None, name: str, may: str, may_not: str) -> None:
    user = User.objects.get(username=name)
    assert user.has_perm(may)
    assert not user.has_perm(may_not)


def test_a_second_load_changes_nothing_not_even_what_happened_since(samples: None) -> None:
    Invoice.objects.filter(reference="INV-1001").update(state="void")
    Customer.objects.filter(email="yen@example.com").update(name="Hanako")
    Team.objects.get(name="Team North").members.clear()
    Group.objects.get(name="Trainees").permissions.clear()
    models = (Team, Customer, PaymentMethod, Invoice, Payment, Refund, User)
    before = [list(model.objects.order_by("pk").values()) for model in models]
    call_command("sample_data", verbosity=0)
    assert [list(model.objects.order_by("pk").values()) for model in models] == before
    assert Team.objects.get(name="Team North").members.count() == 0


def test_a_failing_load_leaves_nothing(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: Any) -> None:
        raise RuntimeError

    monkeypatch.setattr("payments.management.commands.sample_data.sample_rows", broken)
    with pytest.raises(RuntimeError):
        call_command("sample_data")
    assert not User.objects.exists()
    assert not Team.objects.exists()


def test_outside_the_demo_there_is_no_sample_data(db: None, settings: Any) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="under the demo settings only"):
        call_command("sample_data")
    assert not User.objects.exists()


def test_last_month_holds_payments_of_every_known_customer(samples: None) -> None:
    last = timezone.localdate().replace(day=1) - timedelta(days=1)
    for email in KNOWN:
        assert Payment.objects.filter(
            customer__email=email, paid_at__year=last.year, paid_at__month=last.month
        ).exists()
