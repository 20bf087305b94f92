"""A process is killed, or stalled beyond its lease, at each named point: every turn ends once.

Short form: each kind is killed at the points it answers for, and stalled at a few. Full form: every
kind is killed at every hit of every point, and stalled at the points that it answers for and at all
that comes after a decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.conf import settings as django_settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import connection, transaction
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from agent_core.runs.models import ModelCall
from exports.models import Export
from payments.models import Payment
from tests.durability import evidence
from tests.durability.afresh import Afresh
from tests.durability.kinds import ELSEWHERE, KINDS, Kind
from tests.durability.matrix import Fault, Play, Reached, fresh
from tests.durability.plants import PLANTS, refund_sent
from tests.house.points import marks
from tests.journeys.databases import switched, template
from tests.payments.processor import Processor
from tests.rig.forks import Zygote

Rehearsal = tuple[evidence.Facts, list[Reached], int]

REHEARSALS: dict[str, Rehearsal] = {}


@pytest.fixture(scope="module")
def zygote(tmp_path_factory: pytest.TempPathFactory, database_url: str) -> Iterator[Zygote]:
    """Start the process that forks the children."""
    made = Zygote(
        tmp_path_factory.mktemp("zygote"), "tests.durability.acts", DATABASE_URL=database_url
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def filled(database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[tuple[str, Afresh]]:
    """Load the sample data once; return the name of the database, and what brings it back."""

    def load() -> None:
        with override_settings(SAMPLE_LOADERS=["knowledge.services.articles_load"]):
            call_command("sample_data", verbosity=0)

    with django_db_blocker.unblock(), template(database_url, "points", load) as name:
        yield name, Afresh(urlunsplit(urlsplit(database_url)._replace(path=f"/{name}")))


@pytest.fixture
def db() -> None:
    """Say that tests need the session's database; all playings share a copy of their own."""


@pytest.fixture
def playing(  # noqa: PLR0917 - fixtures are named, not counted
    zygote: Zygote,
    db: None,
    filled: tuple[str, Afresh],
    database_url: str,
    processor: Processor,
    settings: Any,
    tmp_path: Path,
    django_db_blocker: DjangoDbBlocker,
) -> Callable[..., Any]:
    """Return a way to play a kind, with at most one fault, on the sample data."""
    database, afresh = filled
    numbers = count(1)

    @contextmanager
    def play(kind: Kind, fault: Fault | None = None) -> Iterator[Play]:
        number = next(numbers)
        files = str(tmp_path / f"files-{number}")
        stores: Any = django_settings.STORAGES
        store = {**stores["default"]["OPTIONS"], "location": files}
        given = {
            "RUN_LEASE_SECONDS": 2,
            "SANDBOX_URL": processor.url,
            "PAYMENT_GATEWAY": "sandbox",
            "PAYMENT_TIMEOUT_SECONDS": 10 if kind.same_words else 0.3,
            "CHAT_MODEL": "offline:planner@0",
            "STORAGES": {**stores, "default": {**stores["default"], "OPTIONS": store}},
        }
        for name, value in given.items():
            setattr(settings, name, value)
        with (
            django_db_blocker.unblock(),
            switched(database),
            fresh(processor),
        ):
            afresh.again()
            kind.before()
            with closing(Play(zygote, processor, tmp_path, database, given)) as made:
                made.acts(kind.acts, fault)
                yield made

    return play


def judged(kind: Kind, play: Play) -> evidence.Facts:
    """Return what is left, once nothing is left that no case may leave."""
    assert evidence.wrong() + play.blamed.wrong() == []
    found = evidence.facts(play.processor)
    return evidence.told(found) if kind.same_words else found


def rehearsed(name: str, playing: Any) -> Rehearsal:
    """Play a kind with no fault: what is left, which points were reached, and the model's calls."""
    kind = KINDS[name]
    if name not in REHEARSALS:
        with playing(kind) as play:
            found = judged(kind, play)
            assert {each: found[each] for each in kind.expected} == dict(kind.expected)
            REHEARSALS[name] = found, play.reached, ModelCall.objects.count()
    return REHEARSALS[name]


def faults_of(reached: list[Reached], how: str, only: Callable[[str], bool]) -> list[Fault]:
    """Return a fault for each hit of each point that was reached, but in the test's own sweeps."""
    return [
        Fault(each.act, each.process, point, hit, how)
        for each in reached
        if each.process >= 0
        for point, hit in each.places()
        if only(point)
    ]


def first_of_each(faults: list[Fault]) -> list[Fault]:
    """Return the first fault at each point."""
    firsts: dict[str, Fault] = {}
    for fault in faults:
        firsts.setdefault(fault.point, fault)
    return list(firsts.values())


def killed(
    kind: Kind, fault: Fault, playing: Any, end: evidence.Facts, calls: int
) -> list[str] | None:
    """Kill a process of the kind, let the rest of the world go on; return what is then wrong.

    None says that it did not come there this time: what is read again after a while is not read as
    often in each playing.
    """
    with playing(kind, fault) as play:
        found = judged(kind, play)
        if not play.met:
            return None
        wrong = [
            f"{name}: {found[name]} instead of {end[name]}"
            for name in end
            if found[name] != end[name]
        ]
        # Between the model's answer and its checkpoint a death costs one more call, and no more.
        if ModelCall.objects.count() > calls + 1:
            wrong.append(f"{ModelCall.objects.count()} calls of the model instead of {calls}")
        return wrong


def stalled(kind: Kind, fault: Fault, playing: Any, end: evidence.Facts) -> list[str] | None:
    """Stop a process, let others end the case, let it go on; return what it has changed."""
    with playing(kind, fault) as play:
        found = judged(kind, play)
        if not play.met:
            return None
        wrong = []
        if play.stopped is not None:
            before = evidence.rows()
            play.resume()
            play.work(len(kind.acts), None)
            wrong = evidence.changed(before, evidence.rows())
            if play.had_ended:
                # Nobody took that over: it may still store the checkpoint of its end.
                wrong = [line for line in wrong if not line.startswith("checkpoint")]
        after = judged(kind, play)
        return wrong + [
            f"{name}: {looked[name]} instead of {end[name]}"
            for looked in (found, after)
            for name in end
            if looked[name] != end[name]
        ]


def played(
    faults: list[Fault], one: Callable[[Fault], list[str] | None], name: str, how: str
) -> None:
    """Play each fault, and fail with all that is wrong at once."""
    wrong, met = [], []
    for fault in faults:
        try:
            found = one(fault)
        except AssertionError as error:
            found = [str(error)]
        if found is not None:
            met.append(fault.point)
        wrong += [f"{name}: {fault}\n    {line}" for line in found or ()]
    missed = len(faults) - len(met)
    print(f"{name}: {how} at {len(set(met))} points, {len(met)} cases, {missed} not reached again")
    assert not wrong, f"{len(wrong)} things are wrong:\n" + "\n".join(wrong)


def covered(kind: Kind, point: str) -> bool:
    """Tell whether the kind answers for this point."""
    return point.partition(":")[0] in kind.covers


def in_short(kind: Kind, point: str) -> bool:
    """Tell whether the short form kills the kind at this point.

    After each step: it is done and nobody knows. What dies before is undone by Postgres, except at
    the processor, which knows of no transaction.
    """
    name, _sign, side = point.partition(":")
    return covered(kind, point) and (side == "after" or name.startswith("processor."))


def test_each_point_of_the_product_is_one_kinds_to_answer_for() -> None:
    answered = Counter(name for kind in KINDS.values() for name in kind.covers)
    answered.update(list(ELSEWHERE))
    assert {name for name, count in answered.items() if count > 1} == set()
    assert set(answered) == {mark.name for mark in marks()}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.covers])
def test_killed_at_the_points_it_answers_for_a_turn_ends_once(name: str, playing: Any) -> None:
    kind = KINDS[name]
    end, reached, calls = rehearsed(name, playing)
    met = {point.partition(":")[0] for each in reached for point in each.points}
    assert set(kind.covers) <= met, f"{name} does not reach {set(kind.covers) - met}"
    faults = first_of_each(faults_of(reached, "kill", lambda point: in_short(kind, point)))
    played(faults, lambda fault: killed(kind, fault, playing, end, calls), name, "killed")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.stalls])
def test_stalled_beyond_its_lease_a_worker_changes_nothing(name: str, playing: Any) -> None:
    kind = KINDS[name]
    end, reached, _calls = rehearsed(name, playing)
    faults = first_of_each(faults_of(reached, "stop", lambda point: point in kind.stalls))
    assert {fault.point for fault in faults} == set(kind.stalls)
    played(faults, lambda fault: stalled(kind, fault, playing, end), name, "stalled")


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", list(KINDS))
def test_killed_at_every_hit_of_every_point_a_turn_ends_once(name: str, playing: Any) -> None:
    kind = KINDS[name]
    end, reached, calls = rehearsed(name, playing)
    faults = faults_of(reached, "kill", lambda _point: True)
    played(faults, lambda fault: killed(kind, fault, playing, end, calls), name, "killed")


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind.stalled_in_full])
def test_stalled_at_every_point_a_worker_changes_nothing(name: str, playing: Any) -> None:
    kind = KINDS[name]
    end, reached, _calls = rehearsed(name, playing)
    # The points that it answers for, and whatever comes after people have decided.
    before = [each for each in reached if each.act < kind.decided]
    after = [each for each in reached if each.act >= kind.decided]
    faults = first_of_each(faults_of(before, "stop", lambda point: covered(kind, point)))
    faults += first_of_each(faults_of(after, "stop", lambda _point: True))
    played(faults, lambda fault: stalled(kind, fault, playing, end), name, "stalled")


def reported(kind: Kind, play: Play, end: evidence.Facts) -> str:
    """Return all that the evidence finds wrong in what is left now."""
    found = evidence.facts(play.processor)
    if kind.same_words:
        found = evidence.told(found)
    differs = [name for name in end if found[name] != end[name]]
    return "; ".join([*evidence.wrong(), *play.blamed.wrong(), *differs])


def test_each_fault_that_is_planted_in_the_rows_is_reported(playing: Any) -> None:
    kind = KINDS["batch"]
    with playing(kind) as play:
        end = judged(kind, play)
        assert reported(kind, play, end) == ""
        for what, (change, word) in PLANTS.items():
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(change)
                assert cursor.rowcount > 0, what
                assert word in reported(kind, play, end), what
                transaction.set_rollback(True)
        payment = Payment.objects.get(reference="PAY-10011")
        refund_sent(play.processor, payment.processor_ref, 1)
        assert "sent back" in reported(kind, play, end)


def test_a_file_that_is_changed_or_of_no_export_is_reported(playing: Any) -> None:
    kind = KINDS["export-handed-back"]
    with playing(kind) as play:
        end = judged(kind, play)
        name = default_storage.save("exports/of-nothing.csv", ContentFile(b"left"))
        assert "a file of no export: of-nothing.csv" in reported(kind, play, end)
        default_storage.delete(name)
        assert reported(kind, play, end) == ""
        with Path(default_storage.path(Export.objects.get().file)).open("ab") as stored:
            stored.write(b"more")
        assert "is not the file that was checked" in reported(kind, play, end)
