"""Who acts in a run, with rights, teams and the bound customer as they are now."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.module_loading import import_string

from agent_core.contract import RunContext
from agent_core.runs.claims import fence_check
from agent_core.runs.models import Call, Conversation, Message, Run
from agent_core.runs.states import Role

FRESH_SECONDS: Final = 0.25
"""How old may be what is known of the run and of who acts before it is read again."""

WORDS: Final = 200
"""How many of the staff member's messages are looked at, the latest."""

TOLD: Final = 50
"""How many answers of tools a value is looked for in, the latest first."""


class Acting:
    """Builds the context of one attempt; what cannot have changed is read once."""

    def __init__(self, run: Run, bind: Callable[[UUID, str], None]) -> None:
        self._run = run
        self._bind = bind
        self._said: tuple[str, ...] | None = None
        self._told: tuple[tuple[str, str], ...] | None = None
        self._known: RunContext | None = None
        self._read_at = 0.0
        self._claimed = run.claimed_at is not None and (
            (timezone.now() - run.claimed_at).total_seconds() < FRESH_SECONDS
        )

    def context(self) -> RunContext:
        """Return who acts; read again when it is older than `FRESH_SECONDS`."""
        if self._known is None or time.monotonic() - self._read_at > FRESH_SECONDS:
            self._read_at = time.monotonic()
            self._known = self._read()
        return self._known

    def answered(self) -> None:
        """Note that a call has answered: what tools have told is read anew."""
        self._told = self._known = None

    def changed(self) -> None:
        """Note that the conversation was bound."""
        self._known = None

    def _read(self) -> RunContext:
        run = self._run
        if self._claimed:
            # The claim has read both a moment ago.
            user, conversation = run.requester, run.conversation
            self._claimed = False
        else:
            user = User.objects.get(pk=run.requester_id)
            conversation = Conversation.objects.get(pk=run.conversation_id)
        if self._said is None:
            self._said = _words(run)
        if self._told is None:
            self._told = _told(run.conversation_id)
        return RunContext(
            run_id=run.pk,
            attempt=run.attempt,
            conversation_id=run.conversation_id,
            requester_id=user.pk,
            requester_name=user.get_full_name() or user.username,
            rights=frozenset(user.get_all_permissions()) if user.is_active else frozenset(),
            team_ids=import_string(settings.RUN_SCOPE)(user),
            customer_id=conversation.customer_id,
            language=run.language,
            words=self._said,
            told=self._told,
            fence=partial(fence_check, run.pk, run.attempt),
            bind_customer=self._bind,
        )


def _words(run: Run) -> tuple[str, ...]:
    """Return the staff member's latest messages up to this run's own, oldest first."""
    said = Message.objects.filter(
        conversation=run.conversation_id,
        role=Role.STAFF,
        position__lte=run.message.position,
        removed_at=None,
    )
    latest = said.order_by("-position").values_list("text", flat=True)[:WORDS]
    return tuple(reversed(latest))


def _told(conversation_id: UUID) -> tuple[tuple[str, str], ...]:
    """Return what tools have answered in a conversation, the latest first."""
    calls = Call.objects.filter(run__conversation=conversation_id).exclude(content="")
    return tuple(calls.order_by("-ended_at").values_list("label", "content")[:TOLD])
