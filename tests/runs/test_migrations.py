"""Columns that come later: the version before goes on writing while a new one is rolled out."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.utils import timezone

from agent_core.runs.models import Run
from agent_core.runs.wording import explain

OURS = ("runs", "reviews", "payments", "tickets", "knowledge", "exports")


def first_state(loader: MigrationLoader) -> ProjectState:
    """Return the project as it was when each of our apps had its first migration alone."""
    leaves = [key for key in loader.graph.leaf_nodes() if key[0] not in OURS]
    firsts = [key for key in loader.graph.root_nodes() if key[0] in OURS]
    return loader.project_state([*leaves, *firsts])


def rows_of(before: Any, owner: User) -> dict[type[Any], Any]:
    """Write a row into every table of ours as the version before does; return it by its model.

    Its models name its own columns only. What a row refers to is written first, required fields
    get any value of their kind, and all others what their model gives them.
    """
    written: dict[type[Any], Any] = {}

    def row(model: type[Any]) -> Any:
        if model not in written:
            fields = [field for field in model._meta.concrete_fields if required(field)]
            values = {field.name: value(field) for field in fields}
            written[model] = model.objects.create(**values)
        return written[model]

    def value(field: Any) -> Any:
        if not field.is_relation:
            return any_value(field)
        if field.related_model._meta.label == "auth.User":
            return before.get_model("auth", "User").objects.get(pk=owner.pk)
        return row(field.related_model)

    for label in OURS:
        for model in before.get_app_config(label).get_models():
            row(model)
    return written


def required(field: Any) -> bool:
    """Tell whether a row must name a field."""
    generated = field.generated or field.get_internal_type().endswith("AutoField")
    stamped = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return not (field.null or field.has_default() or generated or stamped or field.blank)


def any_value(field: Any) -> Any:
    """Return some value of a field's kind."""
    if field.choices:
        return field.choices[0][0]
    kinds: dict[str, Any] = {
        "UUIDField": uuid4(),
        "DateTimeField": timezone.now(),
        "DateField": timezone.localdate(),
        "JSONField": {},
        "BooleanField": True,
    }
    kind = field.get_internal_type()
    if kind in {"CharField", "SlugField", "TextField"}:
        return {"currency": "EUR"}.get(field.name, uuid4().hex)[: field.max_length]
    return kinds.get(kind, 1)


@pytest.mark.django_db
def test_the_version_before_writes_a_row_of_every_kind_and_it_is_read_today(
    django_user_model: type[User],
) -> None:
    before = first_state(MigrationLoader(None)).apps
    written = rows_of(before, django_user_model.objects.create_user("tom"))
    assert {model._meta.app_label for model in written} == set(OURS)
    for model, row in written.items():
        now = apps.get_model(model._meta.label).objects.get(pk=row.pk)
        assert str(now)
        for field in model._meta.concrete_fields:
            assert getattr(now, field.attname) == getattr(row, field.attname), field


def columns(state: ProjectState) -> set[tuple[str, str]]:
    """Return table and column of every field of ours."""
    return {
        (model._meta.db_table, str(field.column))
        for label in OURS
        for model in state.apps.get_app_config(label).get_models()
        for field in model._meta.local_concrete_fields
    }


@pytest.mark.django_db
def test_a_row_can_be_written_without_any_column_that_came_after_the_first_migration() -> None:
    loader = MigrationLoader(None)
    first = columns(first_state(loader))
    # What lies in a table of its own is not written by the version before.
    known = {table for table, _column in first}
    later = {
        (table, column)
        for table, column in columns(loader.project_state()) - first
        if table in known
    }
    assert {("runs_stoprecord", "tokens_saved"), ("exports_export", "deaths")} <= later
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() "
            "AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO'"
        )
        needed = set(cursor.fetchall())
    assert ("runs_stoprecord", "rule") in needed
    assert later & needed == set()


@pytest.mark.django_db
def test_the_version_before_can_begin_a_conversation_and_end_its_run(
    django_user_model: type[User],
) -> None:
    """Its own models name its own columns only, as its processes do."""
    tom = django_user_model.objects.create_user("tom")
    before = first_state(MigrationLoader(None)).apps

    def made(model: str, **values: Any) -> Any:
        return before.get_model("runs", model).objects.create(**values)

    with transaction.atomic():
        conversation = made("Conversation", owner_id=tom.pk)
        message = made("Message", conversation=conversation, position=1, role="staff", text="pay 5")
        run = made(
            "Run", conversation=conversation, requester_id=tom.pk, message=message, state="done"
        )
        made("StopRecord", run=run, rule="completed", model_calls_made=1)

    now = Run.objects.get()
    assert (now.conversation.stop_mode, now.stop_mode) == ("", "hard")
    assert (now.stop.tokens_saved, now.stop.tokens_estimated) == (0, False)
    assert explain(now.stop)["calls"] == "1 model call made"
