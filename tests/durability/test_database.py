"""Postgres goes away in the middle of a turn, or cuts idle sessions: the turn goes on, once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from psycopg import sql

from agent_core.runs.models import Message, Run, StopRecord
from tests.durability.model import HeldModel
from tests.durability.own import broker, db, model, product, variables
from tests.durability.product import LEASE_SECONDS, Person, Product, ended
from tests.journeys.databases import let_go
from tests.rig.sessions import administration, database_of, sessions_end
from tests.rig.waiting import until
from tickets.models import Ticket

__all__ = ["broker", "db", "model", "product", "variables"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def cut(url: str) -> int:
    """End every session of the database; ours too, which is then made anew."""
    with administration(url) as server:
        ended_now = sessions_end(server, database_of(url))
    let_go()
    return ended_now


def lock(url: str, *, allowed: bool) -> None:
    """Let nobody in, or everybody again."""
    name = sql.Identifier(database_of(url))
    with administration(url) as server:
        text = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
        server.execute(text.format(name, sql.SQL("true" if allowed else "false")))


def held(model: HeldModel, person: Person, subject: str) -> Run:
    """Ask for a ticket; return once the model has been asked and does not answer."""
    model.hold()
    asked = model.asked
    run = person.asks(subject)
    until(lambda: model.asked > asked, "the model call")
    return run


def once(run: Run, subject: str) -> None:
    """Check that a turn ended by its one ticket and one answer, with every model call counted."""
    assert StopRecord.objects.get(run=run).rule == "completed"
    assert Ticket.objects.filter(subject=subject).count() == 1
    assert Message.objects.filter(run=run, role="assistant").count() == 1


def test_b11_after_every_session_was_cut_the_next_message_is_answered(
    product: Product, db: str
) -> None:
    """What an idle cut-off does to a quiet worker, web server and beat in the night."""
    before = product.pids()
    person = Person(product)
    assert ended(person.asks("before the cut")) == ["completed"]
    assert cut(db) > 0
    run = person.asks("after the cut")
    assert ended(run) == ["completed"]
    once(run, "after the cut")
    assert product.pids() == before


def test_sessions_that_are_cut_during_a_model_call_do_not_end_the_turn(
    product: Product, db: str, model: HeldModel
) -> None:
    before = product.pids()
    run = held(model, Person(product), "cut in the call")
    cut(db)
    model.release()
    assert ended(run) == ["completed"]
    once(run, "cut in the call")
    assert product.pids() == before


def test_postgres_gone_during_a_model_call_is_waited_for_and_the_turn_ends_once(
    product: Product, db: str, model: HeldModel
) -> None:
    """The model answers while nobody can reach the database; it is back beyond the lease."""
    before = product.pids()
    person = Person(product)
    run, key = held(model, person, "gone in the call"), uuid4()
    lock(db, allowed=False)
    try:
        cut(db)
        model.release()
        # What somebody sends meanwhile is refused in a sentence, and so stays in their draft.
        with ThreadPoolExecutor() as others:
            asked = others.submit(product.readiness)
            refused = person.send("sent while postgres was away", key)
            status, parts = asked.result()
        assert refused.status_code in (500, 503)
        assert refused.json()["error"]
        assert (status, parts["database"]) == (503, False)
        until_gone(product, LEASE_SECONDS)
    finally:
        lock(db, allowed=True)
    assert ended(run, seconds=90) == ["completed"]
    once(run, "gone in the call")
    # The page sends the draft again under the same key: one message.
    first, second = (person.send("sent while postgres was away", key) for _try in range(2))
    assert first.json()["run"] == second.json()["run"]
    later = Run.objects.get(pk=first.json()["run"])
    assert ended(later) == ["completed"]
    once(later, "sent while postgres was away")
    assert product.pids() == before


def until_gone(product: Product, seconds: float) -> None:
    """Wait until the worker has noticed, and for so long as a lease holds."""
    noticed = ("lease_not_renewed", "database_lost", "sweep.database_lost")
    until(lambda: any(word in product.log("worker-turns") for word in noticed), "the notice")
