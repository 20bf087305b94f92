"""Many conversations at once: who does what next, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Final
from uuid import UUID

from agent_core.runs.models import Conversation, Run
from agent_core.runs.states import RUN_FINAL, RunState
from reviews.models import Review
from reviews.states import State
from tests.chaos.persons import Persons, Play, Sent
from tests.chaos.scripts import Talk
from tests.chaos.world import People

THREADS: Final = 8


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
        self._persons = Persons(self._chance, people)
        self._at_once = at_once
        self._rate = rate
        self._next_at = 0.0
        self._waiting = list(talks)
        self._plays: list[Play] = []
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="person")
        self.ended = 0

    @property
    def sent(self) -> list[Sent]:
        """Return every message that was accepted."""
        return self._persons.sent

    @property
    def problems(self) -> list[str]:
        """Return the errors that a person has met."""
        return self._persons.problems

    @property
    def over(self) -> bool:
        """Tell whether every message was sent and needs nobody's doing any more."""
        return not self._waiting and not self._plays

    def tick(self) -> None:
        """Look at every conversation once and do what its people would do next."""
        while self._waiting and len(self._plays) < self._at_once:
            talk = self._waiting.pop(0)
            self._plays.append(Play(talk, self._persons.owner_of(talk)))
        runs, reviews = _look([play.conversation for play in self._plays if play.conversation])
        for play in list(self._plays):
            if play.doing is not None and not play.doing.done():
                continue
            mine = runs.get(play.conversation.pk, []) if play.conversation else []
            act = self._next(play, mine, reviews)
            if act is not None:
                play.doing = self._pool.submit(self._persons.patiently, act)
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
        return lambda: self._persons.say(play, play.talk.turns[len(play.sent)])

    def _about(
        self, play: Play, run: Seen, sent: Sent, reviews: dict[UUID, UUID]
    ) -> Callable[[], None] | None:
        """Return what is to be done about one run, if anything."""
        age, turn = time.monotonic() - sent.at, sent.turn
        if turn.cancel_after is not None and not sent.cancelled and age > turn.cancel_after:
            return lambda: self._persons.cancel(play, run.id, sent)
        review = reviews.get(run.id)
        if run.state == RunState.WAITING and review and not sent.left and age > turn.decide_after:
            return lambda: self._persons.decide(play, review, sent)
        unwell = run.state in (RunState.FAILED, RunState.CANCELLED) and not run.followed
        if unwell and turn.retried and sent.retries < 3 and age > 1.0:
            return lambda: self._persons.retry(play, run.id, sent)
        return None

    def _free(self, play: Play, runs: list[Seen]) -> bool:
        if play.sent and play.sent[-1].turn.rush and len(play.sent) < len(play.talk.turns):
            return True
        left = {sent.message_id for sent in play.sent if sent.left}
        return all(
            run.state in RUN_FINAL or (run.state == RunState.WAITING and run.message_id in left)
            for run in runs
        )


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
