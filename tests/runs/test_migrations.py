"""Columns that come later: the version before goes on writing while a new one is rolled out."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState

from agent_core.runs.models import Run
from agent_core.runs.wording import explain

OURS = ("runs", "reviews", "payments", "tickets", "knowledge", "exports")


def first_state(loader: MigrationLoader) -> ProjectState:
    """Return the project as it was when each of our apps had its first migration alone."""
    leaves = [key for key in loader.graph.leaf_nodes() if key[0] not in OURS]
    firsts = [key for key in loader.graph.root_nodes() if key[0] in OURS]
    return loader.project_state([*leaves, *firsts])


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
    later = columns(loader.project_state()) - columns(first_state(loader))
    assert ("runs_stoprecord", "tokens_saved") in later
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
