"""The administration shows exports, and cancels for those who have that right."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from exports.models import Export
from payments.models import Team
from tests.exports.conftest import Ask, person

pytestmark = pytest.mark.django_db

LIST = "/admin/exports/export/"


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def cancel(client: Client, export: Export) -> int:
    data = {"action": "cancel_selected", "_selected_action": [str(export.pk)]}
    return client.post(LIST, data).status_code


def test_whoever_may_only_look_changes_nothing_on_any_route(ask: Ask, team: Team) -> None:
    export = ask()
    client = client_of(person("ivy", "exports.view_export", team=team, is_staff=True))
    page = client.get(LIST)
    assert page.status_code == 200
    assert "cancel_selected" not in page.content.decode()
    cancel(client, export)
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{export.pk}/change/", {"state": "ready"}).status_code == 403
    assert client.post(f"{LIST}{export.pk}/delete/", {"post": "yes"}).status_code == 403
    export.refresh_from_db()
    assert export.state == "queued"


def test_with_the_right_to_cancel_the_action_cancels_and_ended_ones_stay(
    ask: Ask, team: Team
) -> None:
    running, ended = ask(), ask(currency="EUR")
    Export.objects.filter(pk=ended.pk).update(state="failed")
    client = client_of(
        person("max", "exports.view_export", "exports.cancel_export", team=team, is_staff=True)
    )
    data = {
        "action": "cancel_selected",
        "_selected_action": [str(running.pk), str(ended.pk)],
    }
    page = client.post(LIST, data, follow=True).content.decode()
    assert "1 export cancelled." in page
    assert f"{ended.reference} had already ended." in page
    assert set(Export.objects.values_list("pk", "state")) == {
        (running.pk, "cancelled"),
        (ended.pk, "failed"),
    }


def test_even_an_administrator_adds_changes_and_deletes_nothing(ask: Ask) -> None:
    export = ask()
    client = client_of(User.objects.create_superuser("chief"))
    assert client.get(f"{LIST}{export.pk}/change/").status_code == 200
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}{export.pk}/change/", {"state": "failed"}).status_code == 403
    assert client.post(f"{LIST}{export.pk}/delete/", {"post": "yes"}).status_code == 403
    assert Export.objects.get().state == "queued"


def test_the_page_names_no_file(ask: Ask) -> None:
    export = ask()
    Export.objects.update(file="exports/secret.csv")
    page = client_of(User.objects.create_superuser("chief")).get(f"{LIST}{export.pk}/change/")
    assert "secret.csv" not in page.content.decode()
