"""What the people of a chaos run do, through the services, as the web server does it for them.

What a person would do about an outage is done: the same message is sent again under the same key.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from random import Random
from typing import Final
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import Error, connection

from agent_core.runs import services
from agent_core.runs.errors import RunRefused
from agent_core.runs.models import Conversation, Run
from reviews.errors import ReviewRefused
from reviews.services import review_approve, review_reject, review_withdraw
from tests.chaos.scripts import Talk, Turn
from tests.chaos.world import People

PATIENCE_SECONDS: Final = 180.0


@dataclass(slots=True)
class Sent:
    """One message as it was accepted: from here on it must not be lost."""

    turn: Turn
    run_id: UUID
    message_id: UUID
    at: float
    doubles: set[UUID] = field(default_factory=set)
    left: bool = False
    cancelled: bool = False
    retries: int = 0


@dataclass
class Play:
    """One conversation in progress."""

    talk: Talk
    owner: User
    conversation: Conversation | None = None
    sent: list[Sent] = field(default_factory=list)
    doing: Future[None] | None = None


class Persons:
    """Everybody who asks and decides; `sent` is every message that was accepted."""

    def __init__(self, chance: Random, people: People) -> None:
        self._chance = chance
        self._people = people
        self.sent: list[Sent] = []
        self.problems: list[str] = []

    def owner_of(self, talk: Talk) -> User:
        """Return who has this conversation."""
        return self._people.owners[talk.number % len(self._people.owners)]

    def say(self, play: Play, turn: Turn) -> None:
        """Send a message, now and then twice, until it is accepted."""
        if play.conversation is None:
            play.conversation = services.conversation_start(owner=play.owner)
        conversation, key = play.conversation, uuid4()

        def send() -> Run:
            return services.message_send(
                conversation=conversation, sender=play.owner, text=turn.text, client_key=key
            )

        run = _insist(send)
        sent = Sent(turn, run.pk, run.message_id, time.monotonic())
        if turn.double_sent:
            sent.doubles.add(_insist(send).pk)
        play.sent.append(sent)
        self.sent.append(sent)

    def cancel(self, play: Play, run_id: UUID, sent: Sent) -> None:
        """Ask a run to stop."""
        services.run_cancel(run=Run.objects.get(pk=run_id), actor=play.owner)
        sent.cancelled = True

    def decide(self, play: Play, review_id: UUID, sent: Sent) -> None:
        """Decide a review as the script says; `leave` leaves it for ever."""
        reviewer, chosen = self._chance.choice(self._people.reviewers), sent.turn.decision
        try:
            if chosen == "approve":
                review_approve(review_id=review_id, actor=reviewer, channel="desk")
            elif chosen == "reject":
                review_reject(
                    review_id=review_id, actor=reviewer, channel="desk", sentence="Not this time."
                )
            elif chosen == "withdraw":
                review_withdraw(review_id=review_id, actor=play.owner, channel="chat")
            else:
                sent.left = True
        except ReviewRefused:
            # An earlier try, whose answer was lost with its connection, has decided it.
            return

    def retry(self, play: Play, run_id: UUID, sent: Sent) -> None:
        """Have a failed or cancelled request tried again."""
        sent.retries += 1
        try:
            services.run_retry(run=Run.objects.get(pk=run_id), actor=play.owner)
        except RunRefused:
            return

    def patiently(self, act: Callable[[], None]) -> None:
        """Do something; when the database is away whoever it was looks and tries again later."""
        try:
            act()
        except Error:
            time.sleep(0.3)
        except Exception as error:  # noqa: BLE001 - somebody met an error page: told at the end
            self.problems.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()


def _insist(send: Callable[[], Run]) -> Run:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return send()
        except Error:
            connection.close()
            if time.monotonic() > until:
                raise
            time.sleep(0.3)
