"""Write an entry: one INSERT, in the transaction of what it records.

Rolled back with it, so that nothing is recorded that did not happen. What a refusal records must
outlive the rollback of what was refused: its caller writes it in a transaction of its own, after.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.utils.module_loading import import_string
from psycopg.types.json import Jsonb

from reviews.audit.origin import origin_now
from reviews.audit.words import Action, ActorKind

TEXT_LIMIT = 2000

_INSERT: Final = """
INSERT INTO audit_entry (action, actor_kind, actor_id, actor_name, subject_kind, subject_id,
    reference, rule, before, after, run_id, conversation_id, call_id, origin, address)
VALUES (%(action)s, %(actor_kind)s, %(actor_id)s,
    coalesce(nullif(%(actor_name)s::text, ''),
        (SELECT username FROM auth_user WHERE id = %(actor_id)s), ''),
    %(subject_kind)s, %(subject_id)s, %(reference)s, %(rule)s, %(before)s, %(after)s,
    %(run_id)s, %(conversation_id)s, %(call_id)s, %(origin)s, %(address)s::inet)
"""
"""One entry; whoever has an account and no name given here is named by it."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts; without a name the database puts the account's in."""

    kind: ActorKind
    id: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is acted on: another app's record by kind and key, and how people call it."""

    kind: str
    id: UUID | int | str | None = None
    reference: str = ""


@dataclass(frozen=True, slots=True)
class Trail:
    """The run, conversation and call in which something happened, where there are any."""

    run_id: UUID | None = None
    conversation_id: UUID | None = None
    call_id: UUID | None = None


def person(user: User | AnonymousUser) -> Actor:
    """Name a person; somebody who has not signed in is nobody known."""
    if user.pk is None:
        return Actor(ActorKind.UNKNOWN)
    return Actor(ActorKind.PERSON, user.pk, user.get_username())


def assistant_for(user_id: int, name: str = "") -> Actor:
    """Name the assistant, on behalf of this person."""
    return Actor(ActorKind.ASSISTANT, user_id, name)


def task(name: str) -> Actor:
    """Name a task of the product."""
    return Actor(ActorKind.TASK, None, name)


def audit_write(
    action: Action,
    *,
    actor: Actor,
    subject: Subject,
    rule: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    trail: Trail | None = None,
) -> None:
    """Record one thing in the caller's transaction; card numbers and secrets are masked."""
    trail, origin = trail or Trail(), origin_now()
    values: dict[str, Any] = {
        "action": str(action),
        "actor_kind": str(actor.kind),
        "actor_id": actor.id,
        "actor_name": _text(actor.name)[:200],
        "subject_kind": subject.kind[:40],
        "subject_id": "" if subject.id is None else str(subject.id)[:64],
        "reference": _text(subject.reference)[:300],
        "rule": rule[:60],
        "before": Jsonb(_plain(before or {})),
        "after": Jsonb(_plain(after or {})),
        "run_id": trail.run_id,
        "conversation_id": trail.conversation_id,
        "call_id": trail.call_id,
        "origin": str(origin.kind),
        "address": origin.address,
    }
    with connection.cursor() as cursor:
        # Written with every message and every step that counts: the ORM would cost three times it.
        cursor.execute(_INSERT, values)


def _plain(value: Any) -> Any:
    """Turn what a service holds into JSON, with every text masked and cut."""
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return _text(str(value))


def _text(text: str) -> str:
    masked: str = import_string(settings.TEXT_MASK)(text.replace("\0", ""))
    return masked[:TEXT_LIMIT]
