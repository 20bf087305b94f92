"""Who acts in a run, with rights, teams and the bound customer as they are now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
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
        # The calls of a batch run side by side, and each voids what another may be reading.
        self._lock = threading.Lock()
        self._voided = 0
        self._said: tuple[str, ...] | None = None
        self._told: tuple[tuple[str, str], ...] | None = None
        self._known: tuple[float, RunContext] | None = None

    def context(self) -> RunContext:
        """Return who acts; read again when it is older than `FRESH_SECONDS`."""
        known = self._known
        if known is None or time.monotonic() - known[0] > FRESH_SECONDS:
            before = self._voided
            known = (time.monotonic(), self._read())
            with self._lock:
                if before == self._voided:
                    self._known = known
                    self._told = known[1].told
        return known[1]

    def answered(self) -> None:
        """Note that a call has answered: what tools have told is read anew."""
        with self._lock:
            self._voided += 1
            self._told = self._known = None

    def changed(self) -> None:
        """Note that the conversation was bound."""
        with self._lock:
            self._voided += 1
            self._known = None

    def _read(self) -> RunContext:
        run = self._run
        user = User.objects.get(pk=run.requester_id)
        conversation = Conversation.objects.get(pk=run.conversation_id)
        said, told = self._said, self._told
        if said is None:
            said = self._said = _words(run)
        if told is None:
            told = _told(run.conversation_id)
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
            words=said,
            told=told,
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
