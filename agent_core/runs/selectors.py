"""What a person may see of conversations and runs. Somebody else's is not found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.db.models import QuerySet
from django.utils.module_loading import import_string

from agent_core.runs.errors import NotFound
from agent_core.runs.models import Conversation, Event, Message, Run
from agent_core.runs.states import Role

Viewer = User | AnonymousUser


def conversations_for(user: Viewer) -> QuerySet[Conversation]:
    """Return the person's own conversations, latest first."""
    return Conversation.objects.filter(owner_id=user.pk).order_by("-updated_at")


def conversation_for(user: Viewer, conversation_id: UUID) -> Conversation:
    """Return one of the person's own conversations.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    found = conversations_for(user).filter(pk=conversation_id).first()
    if found is None:
        raise NotFound
    return found


def transcript(conversation: Conversation) -> QuerySet[Message]:
    """Return the lines of a conversation in order, with their runs and stop records."""
    return conversation.messages.select_related("run", "run__stop").order_by("position")


def message_for(user: Viewer, message_id: UUID) -> Message:
    """Return what the person said in one of their own conversations.

    Raises:
        NotFound: there is no such message, or it is somebody else's.
    """
    said = Message.objects.filter(pk=message_id, role=Role.STAFF, conversation__owner_id=user.pk)
    found = said.select_related("conversation").first()
    if found is None:
        raise NotFound
    return found


@dataclass(frozen=True, slots=True)
class EventRow:
    """One durable event as a reader gets it."""

    id: int
    conversation: str
    run: str | None
    kind: str
    payload: Mapping[str, Any]


def events_after_all(last_ids: Mapping[str, int], limit: int = 200) -> list[EventRow]:
    """Return the next durable events of some conversations, at most `limit` of each, in order.

    One statement for all of them, by the index that leads from a conversation to its events.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT event.id, event.conversation_id::text, event.run_id::text, event.kind,"
            " event.payload FROM unnest(%s::uuid[], %s::bigint[]) AS asked (conversation, last)"
            " CROSS JOIN LATERAL (SELECT * FROM runs_event"
            " WHERE conversation_id = asked.conversation AND id > asked.last"
            " ORDER BY id LIMIT %s) AS event ORDER BY event.id",
            [list(last_ids), list(last_ids.values()), limit],
        )
        return [
            EventRow(number, conversation, run, kind, json.loads(payload))
            for number, conversation, run, kind, payload in cursor.fetchall()
        ]


def event_latest(conversation_id: UUID) -> int:
    """Return the id of the latest event, 0 when there is none."""
    latest = Event.objects.filter(conversation_id=conversation_id).order_by("-pk").first()
    return latest.pk if latest else 0


def run_full(user: Viewer, run_id: UUID) -> Run:
    """Return a run with everything of it, for its requester or who may see all runs.

    Raises:
        NotFound: there is none that this person may see.
    """
    found = (
        Run.objects.select_related("conversation", "requester", "message", "stop", "continues")
        .prefetch_related("calls", "model_calls")
        .filter(pk=run_id)
        .first()
    )
    if found is None:
        raise NotFound
    if found.requester_id != user.pk and not _may_see(user, found):
        raise NotFound
    return found


def _may_see(user: Viewer, run: Run) -> bool:
    """Tell whether another's run is open to this person: by right, and of a team they share."""
    if not user.has_perm("runs.view_all_runs"):
        return False
    if user.is_superuser:
        return True
    scope_of = import_string(settings.RUN_SCOPE)
    return not frozenset(scope_of(user)).isdisjoint(scope_of(run.requester))
