"""Who acts in a run, with rights, teams and the bound customer as they are now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.utils.module_loading import import_string

from agent_core.contract import RunContext
from agent_core.runs.claims import fence_check
from agent_core.runs.models import Run
from agent_core.runs.states import Role

FRESH_SECONDS: Final = 0.25
"""How old may be what is known of the run and of who acts before it is read again."""

WORDS: Final = 200
"""How many of the staff member's messages are looked at, the latest."""

TOLD: Final = 50
"""How many answers of tools a value is looked for in, the latest first."""

MODEL_BACKENDS: Final = ["django.contrib.auth.backends.ModelBackend"]
"""The backend whose rights are those of the rows; with any other Django itself is asked."""

_READ: Final = """
SELECT person.id, person.username, person.first_name, person.last_name,
    person.is_active, person.is_superuser,
    conversation.customer_id,
    ARRAY(
        SELECT kind.app_label || '.' || permission.codename
        FROM auth_permission permission
        JOIN django_content_type kind ON kind.id = permission.content_type_id
        WHERE person.is_superuser
        OR permission.id IN (
            SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %(person)s
        )
        OR permission.id IN (
            SELECT in_group.permission_id FROM auth_group_permissions in_group
            JOIN auth_user_groups member ON member.group_id = in_group.group_id
            WHERE member.user_id = %(person)s
        )
    ) AS rights,
    CASE WHEN %(said)s THEN ARRAY(
        SELECT text FROM runs_message
        WHERE conversation_id = %(conversation)s AND role = %(staff)s
        AND position <= %(position)s AND removed_at IS NULL
        ORDER BY position DESC LIMIT %(words)s
    ) END AS said,
    CASE WHEN %(told)s THEN ARRAY(
        SELECT ARRAY[call.label, call.content] FROM runs_call call
        JOIN runs_run run ON run.id = call.run_id
        WHERE run.conversation_id = %(conversation)s AND call.content <> ''
        ORDER BY call.ended_at DESC LIMIT %(answers)s
    ) END AS told
FROM auth_user person, runs_conversation conversation
WHERE person.id = %(person)s AND conversation.id = %(conversation)s
"""
"""Who acts and on whose behalf, of one moment; the latest words and answers if they are asked for.

By hand, because it is read before every model call and every effect: Django would send six.
"""


class _Row(NamedTuple):
    """What `_READ` answers; `said` and `told` are None when they were not asked for."""

    id: int
    username: str
    first_name: str
    last_name: str
    is_active: bool
    is_superuser: bool
    customer_id: UUID | None
    rights: list[str]
    said: list[str] | None
    told: list[list[str]] | None

    def person(self) -> User:
        """Return the staff member; what was not read here is read when it is looked at."""
        read = self._asdict()
        # In the order of the model's fields, which is what Django counts on.
        names = [field.attname for field in User._meta.concrete_fields if field.attname in read]
        return User.from_db(connection.alias, names, [read[name] for name in names])


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
        run, said, told = self._run, self._said, self._told
        row = _row(run, said=said is None, told=told is None)
        person = row.person()
        if said is None:
            # The staff member's messages up to this run's own, oldest first.
            said = self._said = tuple(reversed(row.said or ()))
        if told is None:
            told = tuple((label, content) for label, content in row.told or ())
        return RunContext(
            run_id=run.pk,
            attempt=run.attempt,
            conversation_id=run.conversation_id,
            requester_id=person.pk,
            requester_name=person.get_full_name() or person.username,
            rights=_rights(person, row.rights),
            team_ids=import_string(settings.RUN_SCOPE)(person),
            customer_id=row.customer_id,
            language=run.language,
            words=said,
            told=told,
            fence=partial(fence_check, run.pk, run.attempt),
            bind_customer=self._bind,
        )


def _row(run: Run, *, said: bool, told: bool) -> _Row:
    """Read who acts in a run as it is now."""
    values: dict[str, Any] = {
        "person": run.requester_id,
        "conversation": run.conversation_id,
        "staff": str(Role.STAFF),
        "position": run.message.position,
        "words": WORDS,
        "answers": TOLD,
        "said": said,
        "told": told,
    }
    with connection.cursor() as cursor:
        cursor.execute(_READ, values)
        return _Row(*cursor.fetchone())


def _rights(person: User, granted: list[str]) -> frozenset[str]:
    """Return the rights of a staff member, who has none once their account is closed."""
    if not person.is_active:
        return frozenset()
    if list(settings.AUTHENTICATION_BACKENDS) != MODEL_BACKENDS:
        # A directory, say, may grant what no row here does.
        return frozenset(person.get_all_permissions())
    return frozenset(granted)
