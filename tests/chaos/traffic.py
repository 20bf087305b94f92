"""Many conversations at once, played from outside through the services, as the web server does it.

What a person would do about an outage is done: the same message is sent again under the same key.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import Error, connection

from agent_core.runs import services
from agent_core.runs.errors import RunRefused
from agent_core.runs.models import Conversation, Run
from agent_core.runs.states import RUN_FINAL, RunState
from reviews.errors import ReviewRefused
from reviews.models import Review
from reviews.services import review_approve, review_reject, review_withdraw
from reviews.states import State
from tests.chaos.scripts import Talk, Turn
from tests.chaos.world import People

THREADS: Final = 8
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


@dataclass(frozen=True, slots=True)
class Seen:
    """A run as it stands."""

    id: UUID
    message_id: UUID
    state: str
    followed: bool


class Traffic:
    """Plays the conversations, so many at a time, with so many messages a second at most."""

    def __init__(
        self, seed: str, talks: Sequence[Talk], people: People, *, at_once: int, rate: float
    ) -> None:
        self._chance = Random(f"{seed}-traffic")  # noqa: S311 - no secret
        self._people = people
        self._at_once = at_once
        self._rate = rate
        self._next_at = 0.0
        self._waiting = list(talks)
        self._plays: list[Play] = []
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="person")
        self.sent: list[Sent] = []
        self.ended = 0
        self.problems: list[str] = []

    @property
    def over(self) -> bool:
        """Tell whether every message was sent and needs nobody's doing any more."""
        return not self._waiting and not self._plays

    def tick(self) -> None:
        """Look at every conversation once and do what its people would do next."""
        while self._waiting and len(self._plays) < self._at_once:
            talk = self._waiting.pop(0)
            owner = self._people.owners[talk.number % len(self._people.owners)]
            self._plays.append(Play(talk, owner))
        runs, reviews = _look([play.conversation for play in self._plays if play.conversation])
        for play in list(self._plays):
            if play.doing is not None and not play.doing.done():
                continue
            mine = runs.get(play.conversation.pk, []) if play.conversation else []
            act = self._next(play, mine, reviews)
            if act is not None:
                play.doing = self._pool.submit(self._patiently, act)
        going = sum(not _settled(run) for mine in runs.values() for run in mine)
        self.ended = len(self.sent) - going

    def close(self) -> None:
        """Let the people go."""
        self._pool.shutdown()

    def _next(
        self, play: Play, runs: list[Seen], reviews: dict[UUID, UUID]
    ) -> Callable[[], None] | None:
        by_message = {sent.message_id: sent for sent in play.sent}
        for run in runs:
            sent = by_message.get(run.message_id)
            act = self._about(play, run, sent, reviews) if sent else None
            if act is not None:
                return act
        if not self._free(play, runs):
            return None
        if len(play.sent) == len(play.talk.turns):
            self._plays.remove(play)
            return None
        if time.monotonic() < self._next_at:
            return None
        self._next_at = time.monotonic() + self._chance.uniform(0.5, 1.5) / self._rate
        return lambda: self._say(play, play.talk.turns[len(play.sent)])

    def _about(
        self, play: Play, run: Seen, sent: Sent, reviews: dict[UUID, UUID]
    ) -> Callable[[], None] | None:
        """Return what is to be done about one run, if anything."""
        age, turn = time.monotonic() - sent.at, sent.turn
        if turn.cancel_after is not None and not sent.cancelled and age > turn.cancel_after:
            return lambda: self._cancel(play, run.id, sent)
        review = reviews.get(run.id)
        if run.state == RunState.WAITING and review and not sent.left and age > turn.decide_after:
            return lambda: self._decide(play, review, sent)
        unwell = run.state in (RunState.FAILED, RunState.CANCELLED) and not run.followed
        if unwell and turn.retried and sent.retries < 3 and age > 1.0:
            return lambda: self._retry(play, run.id, sent)
        return None

    def _free(self, play: Play, runs: list[Seen]) -> bool:
        if play.sent and play.sent[-1].turn.rush and len(play.sent) < len(play.talk.turns):
            return True
        left = {sent.message_id for sent in play.sent if sent.left}
        return all(
            run.state in RUN_FINAL or (run.state == RunState.WAITING and run.message_id in left)
            for run in runs
        )

    def _say(self, play: Play, turn: Turn) -> None:
        if play.conversation is None:
            play.conversation = services.conversation_start(owner=play.owner)
        key = uuid4()

        def send() -> Run:
            return services.message_send(
                conversation=play.conversation,  # type: ignore[arg-type]
                sender=play.owner,
                text=turn.text,
                client_key=key,
            )

        run = self._insist(send)
        sent = Sent(turn, run.pk, run.message_id, time.monotonic())
        if turn.double_sent:
            sent.doubles.add(self._insist(send).pk)
        play.sent.append(sent)
        self.sent.append(sent)

    def _cancel(self, play: Play, run_id: UUID, sent: Sent) -> None:
        services.run_cancel(run=Run.objects.get(pk=run_id), actor=play.owner)
        sent.cancelled = True

    def _decide(self, play: Play, review_id: UUID, sent: Sent) -> None:
        reviewer = self._chance.choice(self._people.reviewers)
        chosen = sent.turn.decision
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

    def _retry(self, play: Play, run_id: UUID, sent: Sent) -> None:
        sent.retries += 1
        try:
            services.run_retry(run=Run.objects.get(pk=run_id), actor=play.owner)
        except RunRefused:
            return

    def _insist(self, act: Callable[[], Any]) -> Any:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return act()
            except Error:
                connection.close()
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def _patiently(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Error:
            # The database is away: whoever it was will look again and try again.
            time.sleep(0.3)
        except Exception as error:  # noqa: BLE001 - a person met an error page: reported at the end.
            self.problems.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()


def _settled(run: Seen) -> bool:
    return run.state in RUN_FINAL or run.state == RunState.WAITING


def _look(
    conversations: Sequence[Conversation],
) -> tuple[dict[UUID, list[Seen]], dict[UUID, UUID]]:
    """Return the runs by conversation, and one pending review for each run that has one."""
    keys = [conversation.pk for conversation in conversations]
    runs: dict[UUID, list[Seen]] = {}
    rows = Run.objects.filter(conversation_id__in=keys).order_by("created_at")
    fields = ("conversation_id", "pk", "message_id", "state", "continued_by")
    for conversation, pk, message, state, follower in rows.values_list(*fields):
        runs.setdefault(conversation, []).append(Seen(pk, message, state, follower is not None))
    pending = Review.objects.filter(conversation_id__in=keys, state=State.PENDING)
    return runs, dict(pending.values_list("run_id", "pk"))
