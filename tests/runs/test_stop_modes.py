"""How runs end: as the site says, as the conversation says, or measured by one who may."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.sites import site
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import IntegrityError
from django.utils import timezone

from agent_core.chat_models.scripted import ScriptedModel
from agent_core.errors import ModelUnavailable
from agent_core.polish import NOTES
from agent_core.router import STOP_MODES
from agent_core.runs import endings, services, wording, work
from agent_core.runs.admin import RunAdmin
from agent_core.runs.errors import NotFound, StopModeRefused
from agent_core.runs.management.commands import ask
from agent_core.runs.models import Conversation, Event, Message, Run
from agent_core.runs.states import StopMode
from agent_core.runs.wording import explain
from tests.house.pages import page, table

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]


@pytest.fixture
def ina(transactional_db: None) -> User:
    """Return somebody without any right."""
    return User.objects.create_user("ina", password="x")


def measures(user: User) -> User:
    """Give the right to measure; return the person with rights read anew."""
    user.user_permissions.add(Permission.objects.get(codename="measure_runs"))
    return User.objects.get(pk=user.pk)


def sent(owner: User, *, measure: bool = False) -> Run:
    conversation = services.conversation_start(owner=owner)
    return services.message_send(
        conversation=conversation, sender=owner, text="pay 5", measure=measure
    )


def finished(run: Run) -> Run:
    work.run_work(run.pk)
    run.refresh_from_db()
    return run


def test_the_router_the_rows_and_the_words_know_the_same_modes() -> None:
    assert StopMode.values == list(STOP_MODES) == [str(mode) for mode in wording.STOP_MODES]
    assert tuple(wording.POLISH) == NOTES


def test_the_page_about_stopping_has_the_modes_and_what_became_of_a_rewrite() -> None:
    text = page("docs/stop-reasons.md")
    modes = [[mode.value, str(mode.label), str(wording.STOP_MODES[mode])] for mode in StopMode]
    assert table(text, "Stop modes") == modes
    notes = [[note, str(said)] for note, said in wording.POLISH.items()]
    assert table(text, "The rewrite of `polish`") == notes


def test_a_conversations_choice_goes_before_the_sites_from_the_next_message_on(
    tom: User, settings: Any
) -> None:
    settings.STOP_MODE = "polish"
    conversation = services.conversation_start(owner=tom)

    def mode() -> str:
        run = services.message_send(conversation=conversation, sender=tom, text="pay")
        return run.stop_mode

    assert mode() == "polish"
    services.conversation_stop_mode(conversation=conversation, actor=tom, stop_mode="hard")
    assert mode() == "hard"
    services.conversation_stop_mode(conversation=conversation, actor=tom, stop_mode="")
    assert mode() == "polish"
    assert list(conversation.runs.values_list("stop_mode", flat=True)) == [
        "polish",
        "hard",
        "polish",
    ]


@pytest.mark.parametrize("mode", ["never", "soft", "HARD"])
def test_a_conversation_cannot_have_a_mode_that_is_not_for_conversations(
    tom: User, mode: str
) -> None:
    conversation = services.conversation_start(owner=tom)
    with pytest.raises(StopModeRefused, match="Nothing was changed"):
        services.conversation_stop_mode(conversation=conversation, actor=tom, stop_mode=mode)
    with pytest.raises(IntegrityError):
        Conversation.objects.filter(pk=conversation.pk).update(stop_mode=mode)
    conversation.refresh_from_db()
    assert conversation.stop_mode == ""


def test_somebody_elses_conversation_is_not_found(tom: User, maria: User) -> None:
    conversation = services.conversation_start(owner=tom)
    with pytest.raises(NotFound):
        services.conversation_stop_mode(conversation=conversation, actor=maria, stop_mode="polish")
    conversation.refresh_from_db()
    assert conversation.stop_mode == ""


def test_a_mode_that_nobody_knows_is_refused_by_the_database(tom: User) -> None:
    run = sent(tom)
    with pytest.raises(IntegrityError):
        Run.objects.filter(pk=run.pk).update(stop_mode="perhaps")


def test_without_the_right_to_measure_nothing_is_sent(ina: User) -> None:
    conversation = services.conversation_start(owner=ina)
    with pytest.raises(StopModeRefused, match="Nothing was sent"):
        services.message_send(conversation=conversation, sender=ina, text="pay", measure=True)
    assert (Message.objects.count(), Run.objects.count(), Event.objects.count()) == (0, 0, 0)


def test_measuring_holds_for_one_run_and_neither_for_the_next_nor_for_a_retry(
    script: Play, ina: User
) -> None:
    script(ModelUnavailable("down"))
    ina = measures(ina)
    run = finished(sent(ina, measure=True))
    assert (run.stop_mode, run.stop.rule) == ("never", "failed")

    following = services.message_send(conversation=run.conversation, sender=ina, text="again")
    assert following.stop_mode == "hard"
    assert services.run_retry(run=run, actor=ina).stop_mode == "hard"


def test_a_measured_run_tells_where_it_would_have_stopped(script: Play, tom: User) -> None:
    script([("probe_pay", {"amount": "5"})], "Paid, as you wished.")

    run = finished(sent(tom, measure=True))

    said = (
        "Measured without stopping: it would have stopped after step 1: "
        "everything asked for is done."
    )
    assert explain(run.stop)["notes"] == [said]
    assert said in RunAdmin(Run, site).why(run)
    event = Event.objects.get(run=run, kind="stop").payload
    assert (event["mode"], event["notes"]) == ("never", [said])


def test_a_measured_run_that_nothing_would_have_stopped_says_so(script: Play, tom: User) -> None:
    script("hello")
    run = finished(sent(tom, measure=True))
    assert explain(run.stop)["notes"] == [
        "Measured without stopping: it would not have stopped earlier."
    ]


def fails(run: Run) -> None:
    work.run_work(run.pk)


def is_cancelled(run: Run) -> None:
    services.run_cancel(run=run, actor=run.requester)


def is_parked(run: Run) -> None:
    late = timezone.now() - timedelta(seconds=1)
    Run.objects.filter(pk=run.pk).update(state="running", attempt=1, lease_until=late)
    run.refresh_from_db()
    endings.run_parked(run)


@pytest.mark.parametrize(
    ("rule", "breaks_off"),
    [("failed", fails), ("cancelled", is_cancelled), ("parked", is_parked)],
)
def test_of_a_measured_run_that_broke_off_nobody_says_where_it_would_have_stopped(
    script: Play, tom: User, rule: str, breaks_off: Callable[[Run], None]
) -> None:
    """It may have passed a stop before; the rows do not tell."""
    script([("probe_pay", {"amount": "5"})], ModelUnavailable("down"))
    run = sent(tom, measure=True)

    breaks_off(run)

    run.refresh_from_db()
    assert (run.stop_mode, run.stop.rule) == ("never", rule)
    assert explain(run.stop)["notes"] == []
    assert Event.objects.get(run=run, kind="stop").payload["notes"] == []


@pytest.mark.parametrize(
    ("rewritten", "note"),
    [
        ("Good news: paid 5.", "kept"),
        ("Good news: paid 6.", "facts lost"),
        (RuntimeError("away"), "model failed"),
    ],
)
def test_the_record_of_a_polished_run_says_whose_wording_is_shown(
    script: Play, say: Say, settings: Any, rewritten: Any, note: str
) -> None:
    settings.STOP_MODE = "polish"
    script([("probe_pay", {"amount": "5"})], rewritten)

    run = say("pay 5")

    shown = rewritten if note == "kept" else "Paid 5."
    assert run.answers.get(role="assistant").text == shown
    assert run.stop.evidence["polish"] == note
    assert explain(run.stop)["notes"] == [str(wording.POLISH[note])]
    assert str(wording.POLISH[note]) in RunAdmin(Run, site).why(run)


def test_a_polished_answer_is_never_seen_before_it_was_compared(
    script: Play, say: Say, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.STOP_MODE = "polish"
    pieces: list[str] = []
    monkeypatch.setattr(
        "agent_core.runs.live.delta_publish", lambda *_args: pieces.append(str(_args[-1]))
    )
    script([("probe_pay", {"amount": "5"})], "Good news: paid 6.")

    run = say("pay 5")

    assert pieces == []
    told = json.dumps(list(Event.objects.filter(run=run).values_list("payload", flat=True)))
    assert "paid 6" not in told


def asked(monkeypatch: pytest.MonkeyPatch, *options: str) -> str:
    """Run the command with a worker in this process; return what it printed."""
    follow = ask.Command._follow

    def worked(self: ask.Command, run: Run, *rest: Any) -> int:
        work.run_work(run.pk)
        return follow(self, run, *rest)

    monkeypatch.setattr(ask.Command, "_follow", worked)
    screen = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("ask", "pay 5", *options, stdout=screen)
    return screen.getvalue()


def test_ask_keeps_the_mode_for_the_conversation(
    script: Play, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    script([("probe_pay", {"amount": "5"})], "Good news: paid 5.")

    said = asked(monkeypatch, "--as", "tom", "--stop-mode", "polish")

    assert "The wording is the assistant's" in said
    assert Conversation.objects.get().stop_mode == "polish"


def test_ask_measures_one_message_and_leaves_the_conversation_as_it_was(
    script: Play, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    script([("probe_pay", {"amount": "5"})], "Paid.")

    said = asked(monkeypatch, "--as", "tom", "--stop-mode", "never", "--json")

    stop = json.loads(said.splitlines()[-1])
    assert (stop["event"], stop["mode"], stop["made"]) == ("stop", "never", 2)
    assert stop["notes"][0].startswith("Measured without stopping")
    assert Conversation.objects.get().stop_mode == ""


def test_ask_refuses_to_measure_without_the_right_and_stores_nothing(ina: User) -> None:
    with pytest.raises(CommandError, match="You may not let a request go on"):
        call_command("ask", "pay 5", "--as", "ina", "--stop-mode", "never")
    assert (Conversation.objects.count(), Message.objects.count()) == (0, 0)
