"""What a page does not show, its list cannot be filtered by: it would be read letter by letter."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import CharField, JSONField, TextField
from django.urls import reverse

from payments.models import Intent
from payments.roles import roles_setup
from tests.administration.world import DECLINE, SECRET, Rows, browser_of, person_of, rows_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def north(db: None) -> Rows:
    """Return a team with its rows."""
    roles_setup()
    return rows_of("NORTH")


def hidden(row: Any) -> list[str]:
    """List the fields of a row that hold what no page shows."""
    texts = (CharField, TextField, JSONField)
    fields = (field for field in row._meta.concrete_fields if isinstance(field, texts))
    return [field.name for field in fields if SECRET in str(getattr(row, field.attname))]


def test_no_list_is_filtered_by_what_is_on_no_page(north: Rows) -> None:
    browser = browser_of(User.objects.create_superuser("root"))
    tried = []
    for label, row in north.of.items():
        address = reverse(f"admin:{label.replace('.', '_')}_changelist")
        for field in hidden(row):
            for lookup in (field, f"{field}__startswith", f"{field}__contains"):
                tried.append(lookup)
                assert browser.get(address, {lookup: SECRET}).status_code == 400, (label, lookup)
    assert {"processor_ref", "idempotency_key", "body"} <= set(tried)


@pytest.mark.parametrize(("role", "status"), [("auditor", 400), ("administrator", 200)])
def test_only_who_may_see_a_decline_code_filters_by_it(north: Rows, role: str, status: int) -> None:
    assert Intent.objects.filter(decline_code=DECLINE).exists()
    browser = browser_of(person_of(role, north.team))
    answer = browser.get(reverse("admin:payments_intent_changelist"), {"decline_code": DECLINE})
    assert answer.status_code == status


def test_a_link_by_key_still_leads_to_its_rows(north: Rows) -> None:
    browser = browser_of(User.objects.create_superuser("root"))
    for label, row in north.of.items():
        model = apps.get_model(label)
        address = reverse(f"admin:{label.replace('.', '_')}_changelist")
        answer = browser.get(address, {"id__exact": row.pk})
        assert (answer.status_code, model.objects.filter(pk=row.pk).count()) == (200, 1)
