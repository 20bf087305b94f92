"""What one process of the product does in a case: a task, or what a person asks of the web.

Each is done by the code that the worker or the page calls, and may be asked again after a crash, as
a browser, a person or a timer would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from celery import current_app
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.test import override_settings
from django.utils import timezone

from agent_core.runs import drain, services, tasks
from agent_core.runs.models import Conversation, Message, Run
from agent_core.runs.operating import run_push
from desk.begin import conversation_begin
from exports import services_sweep
from exports.models import Export
from payments.models import Intent
from payments.services_pause import refunds_stop
from payments.states import IntentState
from reviews.errors import ReviewRefused
from reviews.models import Review
from reviews.services import review_approve, review_reject, reviews_expire
from reviews.states import State

_LONG: Final = timedelta(hours=9)


def task(name: str, arguments: list[str]) -> None:
    """Do what lay in a queue."""
    current_app.tasks[name](*arguments)


def leave(name: str, arguments: list[str]) -> None:
    """Take up what lay in a queue in a worker that was asked to leave a moment ago."""
    drain.leave()
    task(name, arguments)


def begin(owner: str, text: str, key: str) -> None:
    """Begin a conversation with its first message; a key that was sent before begins nothing."""
    conversation_begin(owner=_person(owner), text=text, language="en", client_key=UUID(key))


def say(owner: str, text: str, key: str) -> None:
    """Say one more thing in the owner's conversation."""
    conversation = Conversation.objects.filter(owner=_person(owner)).latest("created_at")
    services.message_send(
        conversation=conversation, sender=_person(owner), text=text, client_key=UUID(key)
    )


def edit(owner: str, text: str) -> None:
    """Say what waits in line in other words."""
    for message in _in_line(owner):
        services.message_edit(message=message, actor=_person(owner), text=text)


def remove(owner: str, text: str) -> None:
    """Take back what waits in line, if it still does."""
    for message in _in_line(owner):
        if message.text != text:
            continue
        services.message_remove(message=message, actor=_person(owner))


def approve(by: str, place: int = 0) -> None:
    """Approve a request of the case, unless that was done before."""
    with suppress(ReviewRefused):
        review_approve(review_id=_review(place).pk, actor=_person(by), channel="desk")


def reject(by: str, sentence: str, place: int = 0) -> None:
    """Refuse a request of the case, unless that was done before."""
    with suppress(ReviewRefused):
        review_reject(
            review_id=_review(place).pk, actor=_person(by), channel="desk", sentence=sentence
        )


def expire() -> None:
    """Let the time of every request be over, and do what beat does then."""
    pending = Review.objects.filter(state=State.PENDING)
    pending.update(created_at=F("created_at") - _LONG, expires_at=timezone.now())
    reviews_expire()


def cancel(owner: str) -> None:
    """Stop the owner's newest run."""
    run = Run.objects.filter(requester=_person(owner)).latest("created_at")
    services.run_cancel(run=run, actor=_person(owner))


def retry(owner: str) -> None:
    """Try the owner's first run again."""
    run = Run.objects.filter(requester=_person(owner)).earliest("created_at")
    services.run_retry(run=run, actor=_person(owner))


def stop_mode(owner: str, mode: str) -> None:
    """Choose how the owner's conversation ends its answers."""
    conversation = Conversation.objects.filter(owner=_person(owner)).latest("created_at")
    services.conversation_stop_mode(conversation=conversation, actor=_person(owner), stop_mode=mode)


def push(by: str) -> None:
    """Push the newest run as an operator."""
    run_push(run_id=Run.objects.latest("created_at").pk, actor=_person(by))


def pause(by: str) -> None:
    """Pause all refunds."""
    refunds_stop(actor=_person(by), reason="the processor is being moved")


def settle() -> None:
    """Let the wait for every open intent be over, and do what beat does then."""
    Intent.objects.filter(state=IntentState.OPEN).update(next_try_at=timezone.now())
    current_app.tasks["payments.intents_settle"]()


def days_pass() -> None:
    """Let every key of the processor be older than it lives."""
    Intent.objects.update(created_at=F("created_at") - 3 * _LONG)


def exports_end() -> None:
    """Let every finished export be over, and do what beat does then."""
    Export.objects.exclude(expires_at=None).update(expires_at=timezone.now())
    services_sweep.exports_sweep()


def sweep() -> None:
    """Do what beat does for runs and exports, once leases and messages are old enough."""
    for rows in (Run.objects.all(), Export.objects.all()):
        with transaction.atomic():
            # A process that was stopped in its transaction holds its row: that clock stands still.
            for row in rows.select_for_update(of=("self",), skip_locked=True):
                row.lease_until = row.lease_until and timezone.now() - _LONG
                row.enqueued_at = row.enqueued_at and timezone.now() - _LONG
                row.save(update_fields=["lease_until", "enqueued_at"])
    # Who has been silent since the last act has been silent for longer than a lease.
    with override_settings(RUN_LEASE_SECONDS=0):
        tasks.sweep()
    services_sweep.exports_sweep()


ACTS: Final[Mapping[str, Callable[..., Any]]] = {
    act.__name__: act
    for act in (
        approve,
        begin,
        cancel,
        days_pass,
        edit,
        expire,
        exports_end,
        leave,
        pause,
        push,
        reject,
        remove,
        retry,
        say,
        settle,
        stop_mode,
        sweep,
        task,
    )
}


def _in_line(owner: str) -> list[Message]:
    waiting = Run.objects.filter(requester=_person(owner), state="pending")
    return [run.message for run in waiting.select_related("message")]


def _person(username: str) -> User:
    return User.objects.get(username=username)


def _review(place: int) -> Review:
    """Return a request by its place among those of the case, oldest call first."""
    return Review.objects.order_by("created_at", "title")[place]
