"""The administration shows money and moves none: no route adds, changes or deletes (B27)."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from payments.models import Customer, Intent, Invoice, Payment, PaymentMethod, Refund

MONEY = (Customer, PaymentMethod, Invoice, Payment, Refund, Intent)


def address(model: Any, page: str, *args: Any) -> str:
    """Return the address of one page of the administration."""
    return reverse(f"admin:payments_{model._meta.model_name}_{page}", args=args)


@pytest.fixture
def browser(samples: None, settings: Any) -> Client:
    """Sign in as the superuser, who may do whatever anybody may."""
    settings.SECURE_SSL_REDIRECT = False
    client = Client()
    client.force_login(User.objects.get(username="admin"))
    return client


@pytest.mark.parametrize("model", MONEY)
def test_not_even_a_superuser_can_add_change_or_delete(browser: Client, model: Any) -> None:
    rows = list(model.objects.order_by("pk").values())
    assert browser.get(address(model, "changelist")).status_code == 200
    assert browser.get(address(model, "add")).status_code == 403
    assert browser.post(address(model, "add"), {"amount_minor": "1"}).status_code == 403
    row = model.objects.first()
    if row is not None:
        page = browser.get(address(model, "change", row.pk))
        assert page.status_code == 200
        assert b'name="_save"' not in page.content
        assert b"deletelink" not in page.content
        posted = {"amount_minor": "1", "state": "succeeded", "name": "X", "_save": "Save"}
        assert browser.post(address(model, "change", row.pk), posted).status_code == 403
        assert browser.get(address(model, "delete", row.pk)).status_code == 403
        deleted = browser.post(address(model, "delete", row.pk), {"post": "yes"})
        assert deleted.status_code == 403
        browser.post(
            address(model, "changelist"),
            {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"},
        )
    assert list(model.objects.order_by("pk").values()) == rows


def test_no_action_is_offered(browser: Client) -> None:
    for model in MONEY:
        page = browser.get(address(model, "changelist"))
        assert b"delete_selected" not in page.content
        assert admin.site.get_model_admin(model).get_actions(page.wsgi_request) == {}


def test_a_customers_name_with_script_is_inert_text(browser: Client) -> None:
    """Kept in full, shown as text, in the list and in the detail (B41)."""
    hostile = '<script>alert(1)</script><img src=x onerror="alert(2)">'
    row = Customer.objects.get(email="good-card@example.com")
    Customer.objects.filter(pk=row.pk).update(name=hostile)
    for page in (
        browser.get(address(Customer, "changelist"), {"q": "CUS-1001"}),
        browser.get(address(Customer, "change", row.pk)),
        browser.get(address(Payment, "changelist"), {"q": "PAY-10011"}),
    ):
        assert b"<script>alert(1)" not in page.content
        assert b"<img src=x" not in page.content
        assert b"&lt;script&gt;alert(1)&lt;/script&gt;" in page.content


def test_amounts_read_as_everywhere_else_and_tokens_are_not_shown(browser: Client) -> None:
    page = browser.get(address(Payment, "changelist"), {"q": "PAY-10061"})
    assert b"9899 JPY" in page.content
    page = browser.get(address(Payment, "changelist"), {"q": "good-card@example.com"})
    assert b"40.00 EUR" in page.content
    method = PaymentMethod.objects.get(customer__email="good-card@example.com")
    page = browser.get(address(PaymentMethod, "change", method.pk))
    assert method.processor_ref.encode() not in page.content


def test_someone_who_may_look_sees_the_own_team_only(samples: None) -> None:
    lead = User.objects.get(username="lead")
    lead.user_permissions.add(Permission.objects.get(codename="view_payment"))
    client = Client()
    client.force_login(lead)
    page = client.get(address(Customer, "changelist"), {"q": "example.com"})
    assert page.status_code == 200
    assert b"other-team@example.com" not in page.content
    other = Payment.objects.get(reference="PAY-10071")
    assert client.get(address(Payment, "change", other.pk)).status_code == 302
    own = Payment.objects.get(reference="PAY-10011")
    assert client.get(address(Payment, "change", own.pk)).status_code == 200
    assert client.get(address(Refund, "changelist")).status_code == 403
