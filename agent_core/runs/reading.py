"""A conversation for people who only read it: reviewers who decide what was asked in it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from agent_core.runs.models import Message, Run
from agent_core.runs.states import Role
from reviews.words import person_name

LINES_MOST = 500
"""So many lines are shown, the latest; a chat that is longer is read in the desk."""


def conversation_lines(conversation_id: UUID) -> list[tuple[str, str, datetime, str]]:
    """Return role, speaker, time and text of the lines in order, but for what was taken back."""
    lines = Message.objects.filter(conversation_id=conversation_id, removed_at=None)
    lines = lines.select_related("conversation__owner").order_by("-position")[:LINES_MOST]
    return [
        (line.role, _speaker(line), line.created_at, line.text) for line in reversed(list(lines))
    ]


def words_asked(run_id: UUID) -> str:
    """Return the message from which a run came; empty when there is none."""
    said = Run.objects.filter(pk=run_id).values_list("message__text", flat=True)
    return said.first() or ""


def _speaker(line: Message) -> str:
    if line.role == Role.STAFF:
        return person_name(line.conversation.owner)
    return str(line.get_role_display())
