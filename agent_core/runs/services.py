"""What people and other apps may do with conversations and runs. Each call is one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from agent_core import faults
from agent_core.errors import RunCancelled, StaleAttempt
from agent_core.redaction import redacted
from agent_core.runs.claims import run_next
from agent_core.runs.endings import run_cancelled, run_removed
from agent_core.runs.errors import (
    MessageRefused,
    MessageTaken,
    NotFound,
    StopModeRefused,
)
from agent_core.runs.journal import (
    conversation_lock,
    event_of_message,
    event_write,
    message_add,
    message_write,
    review_event,
    run_event,
)
from agent_core.runs.models import CONVERSATION_STOP_MODES, Conversation, Event, Message, Run
from agent_core.runs.moves import run_move
from agent_core.runs.recording import asked_recorded
from agent_core.runs.services_start import run_of_key, run_requeue, run_retry, run_start
from agent_core.runs.states import RUN_FINAL, Role, RunState, StopMode, run_untouched
from reviews.errors import ReviewRefused
from reviews.models import Review
from reviews.services import review_withdraw
from reviews.states import FINAL as REVIEW_FINAL

__all__ = [
    "conversation_start",
    "conversation_stop_mode",
    "event_post",
    "message_edit",
    "message_remove",
    "message_send",
    "notice_post",
    "review_decided",
    "run_cancel",
    "run_requeue",
    "run_retry",
    "run_wait",
    "run_wake",
]

logger = logging.getLogger(__name__)

MESSAGE_LIMIT = 8_000
"""The most characters of one message."""

MEASURE = "runs.measure_runs"
"""The right to let one run go on where it would stop."""


def conversation_start(*, owner: User, language: str = "en") -> Conversation:
    """Begin a conversation that is bound to no customer yet."""
    return Conversation.objects.create(owner=owner, language=language)


def conversation_stop_mode(
    *, conversation: Conversation, actor: User, stop_mode: str
) -> Conversation:
    """Choose how the runs of a conversation end from now on; empty follows the site's setting.

    Raises:
        NotFound: the conversation is somebody else's.
        StopModeRefused: a conversation cannot have this mode.
    """
    if stop_mode not in ("", *CONVERSATION_STOP_MODES):
        raise StopModeRefused(_("Choose one of the ways to end an answer. Nothing was changed."))
    with faults.commit("conversation.stop_mode", transaction.atomic()):
        locked = conversation_lock(conversation.pk)
        if locked.owner_id != actor.pk:
            raise NotFound
        locked.stop_mode = stop_mode
        locked.save(update_fields=["stop_mode"])
    return locked


def message_send(
    *,
    conversation: Conversation,
    sender: User,
    text: str,
    client_key: UUID | None = None,
    measure: bool = False,
) -> Run:
    """Store a message and the run that works it off; the same `client_key` gives the first run.

    With `measure` this one run goes on where it would stop.

    Raises:
        NotFound: the conversation is somebody else's.
        MessageRefused: the message is empty or too long.
        StopModeRefused: the sender may not measure.
    """
    if measure and not sender.has_perm(MEASURE):
        raise StopModeRefused(_("You may not let a request go on to measure it. Nothing was sent."))
    said = _said(text)
    with faults.commit("message.send", transaction.atomic()):
        # By its owner too: nobody waits for, or holds up, a conversation that is not theirs.
        own = Conversation.objects.filter(pk=conversation.pk, owner_id=sender.pk)
        locked = own.select_for_update(of=("self",)).first()
        if locked is None:
            raise NotFound
        sent = run_of_key(locked.pk, client_key) if client_key else None
        if sent is not None:
            return sent
        message = Message(conversation=locked, role=Role.STAFF, text=said, client_key=client_key)
        message_add(message)
        _said_in(locked, said)
        mode, told = StopMode.NEVER if measure else "", event_of_message(message, None)
        run = run_start(locked, sender, message, continues=None, stop_mode=mode, after=told)
        asked_recorded(run)
        return run


def message_edit(*, message: Message, actor: User, text: str) -> Message:
    """Let a message that waits in line say something else; its run reads only the new text.

    Raises:
        NotFound: the message is somebody else's.
        MessageRefused: the new text is empty or too long.
        MessageTaken: its run was taken up, or it was removed.
    """
    said = _said(text)
    with faults.commit("message.edit", transaction.atomic()):
        conversation, current, run = _in_line(message, actor)
        if current.text == said:
            return current
        _title_follow(conversation, current, said)
        current.text = said
        current.edited_at = timezone.now()
        current.save(update_fields=["text", "edited_at"])
        event_write(
            conversation_id=conversation.pk,
            kind="message_edited",
            payload={
                "message": str(current.pk),
                "text": said,
                "at": current.edited_at.isoformat(),
            },
            run=run,
        )
        return current


def message_remove(*, message: Message, actor: User) -> Message:
    """Take a message back that waits in line, and end its run; no model ever reads it.

    Raises:
        NotFound: the message is somebody else's.
        MessageTaken: its run was taken up, or it was removed.
    """
    with faults.commit("message.remove", transaction.atomic()):
        conversation, current, run = _in_line(message, actor)
        _title_follow(conversation, current, "")
        current.removed_at = timezone.now()
        current.save(update_fields=["removed_at"])
        event_write(
            conversation_id=conversation.pk,
            kind="message_removed",
            payload={"message": str(current.pk), "at": current.removed_at.isoformat()},
            run=run,
        )
        run_removed(run)
        return current


def run_cancel(*, run: Run, actor: User) -> Run:
    """Ask a run to stop: at once when it has not begun, else at its next safe point.

    A run that waits for a person is ended by withdrawing what it waits for.

    Raises:
        NotFound: the run is somebody else's.
    """
    if run.requester_id != actor.pk:
        raise NotFound
    with faults.commit("run.cancel", transaction.atomic()):
        conversation_lock(run.conversation_id)
        current = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        if run_untouched(current.state, current.attempt):
            run_cancelled(current, from_state=RunState(current.state))
        elif current.state not in RUN_FINAL:
            current.cancel_requested_at = current.cancel_requested_at or timezone.now()
            current.save(update_fields=["cancel_requested_at"])
    if current.state == RunState.WAITING:
        for review in Review.objects.filter(run_id=run.pk).exclude(state__in=REVIEW_FINAL):
            # Decided or expired a moment ago: then the run goes on to its next safe point.
            with suppress(ReviewRefused):
                review_withdraw(review_id=review.pk, actor=actor, channel="chat")
    current.refresh_from_db()
    return current


def review_decided(review: Review) -> None:
    """Let a run go on once all its reviews are final; part of the decision's transaction."""
    run = Run.objects.filter(pk=review.run_id).first()
    if run is None:
        return
    with transaction.atomic():
        conversation_lock(run.conversation_id)
        review_event(run, review)
        run_wake(run.pk)


def run_wake(run_id: UUID) -> bool:
    """Move a waiting run on if all its reviews are final; under the conversation's lock."""
    if Review.objects.filter(run_id=run_id).exclude(state__in=REVIEW_FINAL).exists():
        return False
    moved = run_move(Run.objects.filter(pk=run_id), RunState.DECIDED)
    if moved:
        run = Run.objects.get(pk=run_id)
        run_event(run)
        run_next(run.conversation_id)
    return moved


def run_wait(run: Run, worked_seconds: int) -> None:
    """Let a run wait for people, unless they have decided in the meantime.

    Raises:
        RunCancelled: the requester asked it to stop after its last safe point.
        StaleAttempt: the run was taken over.
    """
    with faults.commit("run.wait", transaction.atomic()):
        conversation_lock(run.conversation_id)
        moved = run_move(
            Run.objects.filter(pk=run.pk, attempt=run.attempt),
            RunState.WAITING,
            lease_until=None,
            quarantined=False,
            strikes=0,
            worked_seconds=worked_seconds,
        )
        if not moved:
            raise StaleAttempt
        run.refresh_from_db()
        if run.cancel_requested_at is not None:
            raise RunCancelled
        run_event(run)
        # Whoever decided between the interrupt and here found the run not yet waiting.
        if not run_wake(run.pk):
            run_next(run.conversation_id)


def notice_post(conversation_id: UUID, said: Callable[[], str], dedupe: str) -> None:
    """Post what is `said` in the conversation's language; the same `dedupe` posts it once."""
    try:
        with faults.commit("notice.post", transaction.atomic()):
            conversation = conversation_lock(conversation_id)
            with translation.override(conversation.language):
                text = redacted(said())
            message_write(conversation=conversation, role=Role.NOTICE, text=text, dedupe=dedupe)
    except Conversation.DoesNotExist:
        logger.info("notice.no_conversation", extra={"conversation": str(conversation_id)})
    except IntegrityError:
        logger.info("notice.posted_before", extra={"conversation": str(conversation_id)})


def event_post(
    *,
    conversation_id: UUID,
    kind: str,
    payload: Mapping[str, Any],
    run: Run | None = None,
) -> Event:
    """Write one durable event of another app (an export's progress)."""
    with transaction.atomic():
        conversation_lock(conversation_id)
        return event_write(conversation_id=conversation_id, kind=kind, payload=payload, run=run)


def _in_line(message: Message, actor: User) -> tuple[Conversation, Message, Run]:
    """Lock a message that nobody has begun to work on, with its run, against being taken up.

    Raises:
        NotFound: it is somebody else's.
        MessageTaken: a worker has it or had it, or it was removed.
    """
    conversation = conversation_lock(message.conversation_id)
    if conversation.owner_id != actor.pk:
        raise NotFound
    current = Message.objects.get(pk=message.pk, role=Role.STAFF)
    if current.removed_at is not None:
        raise MessageTaken(_("This message was removed already. Nothing was changed."))
    runs = list(current.runs.select_for_update(of=("self",)).order_by("created_at"))
    waits = [run for run in runs if run_untouched(run.state, run.attempt)]
    # A message that is tried again was read the first time.
    if not waits or any(run.attempt for run in runs):
        raise MessageTaken(
            _("The assistant has taken this message up a moment ago. Nothing was changed.")
        )
    return conversation, current, waits[-1]


def _title_follow(conversation: Conversation, message: Message, said: str) -> None:
    """Let a title that was taken from the message go with it."""
    if conversation.title == _title(message.text):
        conversation.title = _title(said)
        conversation.save(update_fields=["title"])


def _said_in(conversation: Conversation, said: str) -> None:
    """Put a conversation at the top of the list, with a title if it has none yet."""
    conversation.title = conversation.title or _title(said)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_conversation SET title = %s, updated_at = %s WHERE id = %s",
            [conversation.title, timezone.now(), conversation.pk],
        )


def _title(text: str) -> str:
    return text.splitlines()[0][:80] if text else ""


def _said(text: str) -> str:
    """Return a message as it is stored, with card numbers and secrets masked.

    Raises:
        MessageRefused: it is empty or too long.
    """
    said = redacted(text.replace("\x00", "").strip())
    if not said:
        raise MessageRefused(_("Write what the customer needs, then send."))
    if len(said) > MESSAGE_LIMIT:
        raise MessageRefused(
            _("The message is too long: %(length)s of at most %(limit)s characters.")
            % {"length": len(said), "limit": MESSAGE_LIMIT}
        )
    return said
