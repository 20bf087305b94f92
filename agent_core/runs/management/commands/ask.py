"""Ask the assistant from a terminal, against the running product, and print what happens."""

import json
import logging
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from agent_core.errors import CountersignError
from agent_core.runs import live
from agent_core.runs.asking import (
    EXIT_CODES,
    WAITING_EXIT,
    event_line,
    reviews_approve,
    reviews_waiting,
    waiting_words,
)
from agent_core.runs.models import CONVERSATION_STOP_MODES, Conversation, Run
from agent_core.runs.selectors import EventRow, conversation_for, event_latest, events_after_all
from agent_core.runs.services import (
    conversation_start,
    conversation_stop_mode,
    message_send,
    run_cancel,
)
from agent_core.runs.states import RUN_FINAL, RunState, StopMode

UNCLAIMED_SECONDS: Final = 20
"""How long a message may wait for a worker before the command says that there is none."""


class Command(BaseCommand):
    """Send one message as a staff member and follow its run to the end."""

    help = "Ask the assistant, as the given staff member, and follow the run to its end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare who asks what, and how it is printed."""
        parser.add_argument("text", help="what the customer needs, in your own words")
        parser.add_argument("--as", dest="sender", required=True, help="who asks (user name)")
        parser.add_argument(
            "--approve-as", dest="reviewer", help="approve what waits as this user (demo only)"
        )
        parser.add_argument("--conversation", type=UUID, help="go on in this conversation")
        parser.add_argument(
            "--stop-mode",
            choices=StopMode.values,
            help="how the answers of this conversation end; never: this message alone, to measure",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Send, follow and end with the exit code of the stop record's rule."""
        with _logs_kept_away():
            self._ask(options)

    def _ask(self, options: dict[str, Any]) -> None:
        if options["reviewer"] and not settings.DEMO:
            raise CommandError("Approving from the command line exists in the demo setting only.")
        sender = _user(options["sender"])
        reviewer = _user(options["reviewer"]) if options["reviewer"] else None
        try:
            run, seen = _send(sender, options)
        except CountersignError as error:
            raise CommandError(str(error)) from None
        self.as_json = options["json"]
        try:
            code = self._follow(run, seen, reviewer)
        except KeyboardInterrupt:
            run_cancel(run=run, actor=sender)
            raise CommandError("You interrupted; the request was asked to stop.") from None
        raise SystemExit(code)

    def _follow(self, run: Run, seen: int, reviewer: User | None) -> int:
        began = time.monotonic()
        for event in self._events(run, seen):
            if event is None:
                run.refresh_from_db()
                if run.state == RunState.QUEUED and time.monotonic() - began > UNCLAIMED_SECONDS:
                    run_cancel(run=run, actor=run.requester)
                    raise CommandError("No worker takes the message. Start the product: make run")
                continue
            began = time.monotonic()
            self._print(event)
            if event.run == str(run.pk) and event.payload.get("state") == RunState.WAITING:
                if reviewer is None:
                    self._say(waiting_words(run))
                    return WAITING_EXIT
                for line in reviews_approve(run, reviewer):
                    self._say(line)
                if reviews_waiting(run):
                    self._say(waiting_words(run))
                    return WAITING_EXIT
        run.refresh_from_db()
        return EXIT_CODES[run.stop.rule]

    def _events(self, run: Run, seen: int) -> Iterator[EventRow | None]:
        """Yield the events as they come, None between looks, until the run has ended."""
        with live.listening(run.conversation_id) as wait:
            while True:
                ended = Run.objects.filter(pk=run.pk, state__in=RUN_FINAL).exists()
                for event in events_after_all({str(run.conversation_id): seen}):
                    seen = event.id
                    yield event
                if ended:
                    return
                yield None
                wait()

    def _print(self, event: EventRow) -> None:
        if self.as_json:
            line = {"event": event.kind, "id": event.id, "run": event.run or ""}
            self.stdout.write(json.dumps({**line, **event.payload}))
        elif text := event_line(event):
            self.stdout.write(text)
        self.stdout.flush()

    def _say(self, text: str) -> None:
        line = json.dumps({"event": "note", "text": text}) if self.as_json else f"· {text}"
        self.stdout.write(line)


@contextmanager
def _logs_kept_away() -> Iterator[None]:
    """Write log lines to the product's log folder, if there is one: a terminal is for people."""
    root = logging.getLogger()
    shown = [handler for handler in root.handlers if type(handler) is logging.StreamHandler]
    kept = _log_file()
    if shown:
        kept.setFormatter(shown[0].formatter)
        kept.filters = list(shown[0].filters)
    for handler in shown:
        root.removeHandler(handler)
    root.addHandler(kept)
    try:
        yield
    finally:
        root.removeHandler(kept)
        kept.close()
        for handler in shown:
            root.addHandler(handler)


def _log_file() -> logging.Handler:
    try:
        return logging.FileHandler(settings.LOG_FOLDER / "ask.log", encoding="utf-8")
    except OSError:
        return logging.NullHandler()


def _user(name: str) -> User:
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise CommandError(f"There is no active user called {name!r}.")
    return user


def _send(sender: User, options: dict[str, Any]) -> tuple[Run, int]:
    """Send the message; return its run and the event before it. Refused, nothing is stored."""
    mode = options["stop_mode"]
    with transaction.atomic():
        conversation = _conversation(sender, options["conversation"])
        if mode in CONVERSATION_STOP_MODES:
            conversation_stop_mode(conversation=conversation, actor=sender, stop_mode=mode)
        seen = event_latest(conversation.pk)
        run = message_send(
            conversation=conversation,
            sender=sender,
            text=options["text"],
            measure=mode == StopMode.NEVER,
        )
    return run, seen


def _conversation(sender: User, conversation_id: UUID | None) -> Conversation:
    if conversation_id is None:
        return conversation_start(owner=sender)
    return conversation_for(sender, conversation_id)
