"""The operators' page: who finds it, what it shows, and what its buttons do."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from agent_core.runs.models import Run
from agent_core.runs.states import RunState
from config import heartbeat
from exports.models import Export
from payments.balances import refunds_pause
from payments.models import Breaker, Intent, Pause, Payment, Team
from payments.roles import ADMINISTRATORS
from reviews.models import Review
from tests.desk.conftest import Enter, asked, begun, person
from tests.desk.test_chat import words

ADDRESS = "/operator/"


@pytest.fixture
def adam(teams: dict[str, Team]) -> User:
    """Operate; of Team South, and so far from what Team North talks about."""
    return person("Adam", ADMINISTRATORS, teams["South"], last_name="Roth")


@pytest.fixture(autouse=True)
def no_worker_is_known(redis_url: str) -> None:
    with heartbeat._client() as client:
        client.delete(heartbeat.KEY, "turns", "quarantine", "exports", "maintenance")


def shown(enter: Enter, user: User) -> str:
    answer = enter(user).get(ADDRESS)
    assert answer.status_code == 200
    return words(answer.content.decode())


def test_it_is_not_found_without_the_right_and_reads_like_any_missing_page(
    enter: Enter, tom: User, maria: User, adam: User
) -> None:
    for stranger in (tom, maria):
        client = enter(stranger)
        missing = client.get("/no-such-page/")
        assert (client.get(ADDRESS).status_code, missing.status_code) == (404, 404)
        assert client.get(ADDRESS).content == missing.content
        assert "Operations" not in words(client.get("/").content.decode())
    client = enter(adam)
    assert client.get(ADDRESS).status_code == 200
    assert "Operations" in words(client.get("/").content.decode())


def test_every_queue_is_shown_with_its_length_and_who_works_on_it(enter: Enter, adam: User) -> None:
    heartbeat.beat("turns@one")
    with heartbeat._client() as client:
        client.rpush("turns", "a", "b", "c")
        client.hset(heartbeat.KEY, "exports@two", str(timezone.now().timestamp() - 40))
        client.hset(heartbeat.KEY, "exports@old", "1000")
    said = shown(enter, adam)
    assert "turns requests of staff 3 turns@one" in said
    assert "exports exports 0 none alive exports@two 40 s ago" in said
    assert "exports@old" not in said
    with heartbeat._client() as client:
        assert set(client.hkeys(heartbeat.KEY)) == {b"turns@one", b"exports@two"}


def test_the_page_calls_alive_whom_the_readiness_page_calls_alive(
    enter: Enter, adam: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "FRESH_SECONDS", 60)
    with heartbeat._client() as client:
        client.hset(heartbeat.KEY, "exports@two", str(timezone.now().timestamp() - 40))
    assert heartbeat.alive() == {"exports"}
    assert "exports exports 0 exports@two 40 s ago" in shown(enter, adam)


def test_a_lost_redis_is_told_and_the_rest_still_shown(
    enter: Enter, adam: User, review: Review, settings: Any
) -> None:
    Run.objects.filter(pk=review.run_id).update(state=RunState.PARKED)
    settings.REDIS_URL = "unix:///tmp/no-such-socket"
    said = shown(enter, adam)
    assert "Redis does not answer" in said
    assert str(review.run_id) in said


def test_runs_are_shown_by_how_they_stand_and_not_what_was_said_in_them(
    enter: Enter, adam: User, talk: Any, payment: Payment, export: Export
) -> None:
    assert export.run_id is not None
    run = Run.objects.get(pk=export.run_id)
    begun(run)
    Run.objects.filter(pk=run.pk).update(worker="turns@one", attempt=3)
    Export.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    unknown = timezone.now() - timedelta(seconds=90)
    Intent.objects.create(
        operation="refund",
        target_id=payment.pk,
        amount_minor=500,
        currency="EUR",
        gateway="sandbox",
        idempotency_key="k",
        body={},
        review_id=run.pk,
        run_id=run.pk,
        requester=talk.owner,
        tries=4,
        next_try_at=timezone.now() + timedelta(seconds=20),
        unknown_at=unknown,
    )
    said = shown(enter, adam)
    assert f"{run.pk} turns@one 3" in said
    assert "4 min 59" in said or "5 min 0" in said
    assert "EXP-7001 writing" in said
    assert "refund 5.00 EUR 4 1 min 30 s" in said
    for secret in ("October", "export payments of last month", "Ana Silva", "PAY-7001"):
        assert secret not in said


def test_a_run_that_stands_still_is_pushed_by_a_button(enter: Enter, adam: User, talk: Any) -> None:
    run = asked(talk, "hello")
    then = timezone.now() - timedelta(minutes=2)
    Run.objects.filter(pk=run.pk).update(created_at=then, enqueued_at=then)
    run.events.update(created_at=then)
    said = shown(enter, adam)
    assert f"{run.pk} no worker has taken it 2 min" in said
    answer = enter(adam).post(reverse("operator-push", args=[run.pk]), follow=True)
    assert "Sent on its way again" in words(answer.content.decode())
    run.refresh_from_db()
    assert run.enqueued_at is not None
    assert run.enqueued_at > then
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE, ended_at=timezone.now())
    answer = enter(adam).post(reverse("operator-push", args=[run.pk]), follow=True)
    page = words(answer.content.decode())
    assert "This request does not stand still any more. Nothing was changed." in page
    assert "Sent on its way again" not in page


def test_a_run_that_was_set_aside_goes_on_as_a_new_one_of_its_requester(
    enter: Enter, adam: User, talk: Any, tom: User
) -> None:
    run = asked(talk, "hello")
    Run.objects.filter(pk=run.pk).update(
        state=RunState.PARKED, ended_at=timezone.now(), failure_reference="AB12", strikes=3
    )
    assert f"{run.pk} AB12 3" in shown(enter, adam)
    for _press in range(2):
        answer = enter(adam).post(reverse("operator-requeue", args=[run.pk]), follow=True)
        assert "goes on as a new run" in words(answer.content.decode())
    again = Run.objects.get(continues=run)
    assert (again.requester, again.state) == (tom, RunState.QUEUED)
    assert "Nothing is set aside" in shown(enter, adam)


def test_refunds_are_paused_and_let_go_on_and_everybody_reads_it_at_the_next_page(
    enter: Enter, adam: User, tom: User, talk: Any
) -> None:
    pages = ("/", "/reviews/", reverse("chat", args=[talk.pk]))
    said = [words(enter(tom).get(page).content.decode()) for page in pages]
    assert not any("Refunds are paused" in page for page in said)

    change = {"do": "pause", "reason": "the processor books twice <b>"}
    answer = enter(adam).post(reverse("operator-refunds"), change, follow=True)
    assert "Paused by Adam Roth" in words(answer.content.decode())
    assert "books twice &lt;b&gt;" in answer.content.decode()
    said = [words(enter(tom).get(page).content.decode()) for page in pages]
    assert all("Refunds are paused" in page for page in said)
    assert not any("books twice" in page for page in said)

    enter(adam).post(reverse("operator-refunds"), ending(answer.content.decode()))
    assert refunds_pause() is None
    assert "Refunds are paused" not in words(enter(tom).get("/").content.decode())
    assert "well again" in shown(enter, adam)
    kept = Pause.objects.get()
    assert (kept.paused_by, kept.resumed_by) == (adam, adam)


def test_the_second_of_two_operators_reads_who_was_first_and_that_their_reason_is_not_kept(
    enter: Enter, adam: User
) -> None:
    """A repeat of one's own press is no second one."""
    eve = User.objects.create_superuser("eve", first_name="Eve", last_name="Lund")
    pause = {"do": "pause", "reason": "the processor books twice"}

    def press(who: User, form: dict[str, str]) -> str:
        answer = enter(who).post(reverse("operator-refunds"), form, follow=True)
        return words(answer.content.decode())

    for _press in range(2):
        assert "paused already" not in press(adam, pause)
    said = press(eve, pause | {"reason": "a wrong price list"})
    assert re.search(
        r"Refunds are paused already, by Adam Roth since \d+ \w+ \d{4}, \d\d:\d\d\. "
        r"Your reason was not kept\.",
        said,
    )
    go_on = {"do": "resume", "pause": str(Pause.objects.get().pk), "reason": "well again"}
    for _press in range(2):
        said = press(eve, go_on)
        assert "Refunds go on." in said
        assert "already" not in said
    said = press(adam, go_on | {"reason": "the list is right"})
    assert "Refunds go on already, let go by Eve Lund on" in said
    assert "Your reason was not kept." in said
    kept = Pause.objects.get()
    assert (kept.reason, kept.resumed_reason) == ("the processor books twice", "well again")


def ending(page: str) -> dict[str, str]:
    """Return what the form of a page sends that shows a pause."""
    fields = dict(re.findall(r'<input type="hidden" name="(do|pause)" value="([^"]+)">', page))
    assert set(fields) == {"do", "pause"}
    return fields | {"reason": "well again"}


def test_an_old_page_does_not_end_a_later_pause_and_reads_that_it_holds(
    enter: Enter, adam: User
) -> None:
    """Two pages show the first pause; it is ended, another begins; then the old page is sent."""
    change = {"do": "pause", "reason": "the processor books twice"}
    old = enter(adam).post(reverse("operator-refunds"), change, follow=True).content.decode()
    enter(adam).post(reverse("operator-refunds"), ending(old))
    enter(adam).post(reverse("operator-refunds"), {"do": "pause", "reason": "a wrong price list"})
    holds = refunds_pause()

    answer = enter(adam).post(reverse("operator-refunds"), ending(old))

    assert answer.status_code == 422
    assert "another one holds since" in words(answer.content.decode())
    assert holds is not None
    assert (refunds_pause(), ending(answer.content.decode())["pause"]) == (holds, str(holds.pk))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"do": ""},
        {"do": "stop"},
        {"do": "resume"},
        {"do": "resume", "pause": "x"},
        {"do": "Pause"},
        {"do": "pause\0"},
    ],
)
def test_what_is_no_form_of_the_page_changes_nothing(
    enter: Enter, adam: User, change: dict[str, str]
) -> None:
    sent = change | {"reason": "why not"}
    assert enter(adam).post(reverse("operator-refunds"), sent).status_code == 400
    assert refunds_pause() is None
    enter(adam).post(reverse("operator-refunds"), {"do": "pause", "reason": "a wrong price list"})
    assert enter(adam).post(reverse("operator-refunds"), sent).status_code == 400
    assert refunds_pause() is not None


def test_without_a_reason_nothing_is_paused_and_what_was_typed_is_kept(
    enter: Enter, adam: User
) -> None:
    answer = enter(adam).post(reverse("operator-refunds"), {"do": "pause", "reason": "x" * 301})
    assert answer.status_code == 422
    assert "at most 300 characters" in words(answer.content.decode())
    assert "x" * 301 in answer.content.decode()
    assert refunds_pause() is None


def test_an_operator_without_the_right_to_pause_sees_the_state_and_no_button(
    enter: Enter, adam: User, teams: dict[str, Team]
) -> None:
    from django.contrib.auth.models import Permission

    otto = User.objects.create_user("otto")
    otto.user_permissions.add(Permission.objects.get(codename="operate"))
    assert "Pause all refunds" in shown(enter, adam)
    assert "Pause all refunds" not in shown(enter, otto)
    answer = enter(otto).post(reverse("operator-refunds"), {"do": "pause", "reason": "why not"})
    assert (answer.status_code, refunds_pause()) == (422, None)


def test_a_processor_that_is_left_alone_or_refuses_us_is_told(enter: Enter, adam: User) -> None:
    assert "payment processor (" not in shown(enter, adam)
    until = timezone.now() + timedelta(seconds=20)
    Breaker.objects.create(gateway="stripe", failures=10, rests_until=until)
    Breaker.objects.create(
        gateway="sandbox", refused_at=timezone.now(), refused_reference="E-ABCDEFGH"
    )
    said = shown(enter, adam)
    assert "The payment processor (stripe) did not answer 10 times in a row" in said
    assert "The payment processor (sandbox) refuses our access" in said
    assert "E-ABCDEFGH" in said
