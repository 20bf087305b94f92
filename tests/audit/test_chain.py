"""The chain: gapless in an order of its own, made by one at a time, and every tampering seen."""

import threading
from collections.abc import Callable
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction

from reviews.audit import chain
from reviews.audit.chain import BEGINNING, Head, chain_extend, chain_head
from reviews.audit.models import Entry, Link, Unlinked
from reviews.audit.services import Actor, Subject, audit_write
from reviews.audit.verifying import Report, chain_verify
from reviews.audit.words import Action, ActorKind

pytestmark = pytest.mark.django_db(transaction=True)


def written(count: int = 1) -> list[int]:
    """Write entries, and return their ids."""
    for number in range(count):
        audit_write(
            Action.REVIEW_APPROVED,
            actor=Actor(ActorKind.PERSON, 7, "lea"),
            subject=Subject("review", number, f"Refund {number}"),
            before={"amount_minor": 2500},
            after={"amount_minor": 2000, "why": "ein Grund – “größer”"},
        )
    ids = Entry.objects.order_by("-id").values_list("id", flat=True)[:count]
    return sorted(ids)


def checked(expected: Head | None = None) -> list[str]:
    """Return what the check finds."""
    return list(chain_verify(Report(), expected))


@pytest.fixture
def tamper(database_url: str) -> Callable[..., None]:
    """Return how somebody who owns the database changes it past the triggers."""

    def run(sql: str, *values: Any) -> None:
        with psycopg.connect(database_url) as session:
            for table in ("audit_entry", "audit_link"):
                session.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            session.execute(sql.encode(), values or None)
            for name in ("audit_entry_kept", "audit_link_kept", "audit_entry_marked"):
                session.execute(
                    f"ALTER TABLE {name.rpartition('_')[0]} ENABLE ALWAYS TRIGGER {name}"
                )

    return run


# Building it


def test_every_entry_gets_the_next_position_and_signs_the_one_before() -> None:
    ids = written(3)
    assert Unlinked.objects.count() == 3
    assert chain_extend() == 3
    links = list(Link.objects.all())
    assert [(link.position, link.entry_id) for link in links] == list(enumerate(ids, 1))
    assert [link.previous for link in links] == [BEGINNING, links[0].digest, links[1].digest]
    assert (chain_extend(), Unlinked.objects.count(), checked()) == (0, 0, [])


def test_more_than_one_portion_is_chained_in_one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "PORTION", 2)
    written(5)
    assert (chain_extend(), chain_head().position, checked()) == (5, 5, [])


def test_an_entry_that_commits_late_with_a_small_number_comes_later_in_the_chain(
    database_url: str,
) -> None:
    """Two sessions: the first draws its number, the second overtakes it and is chained."""
    insert = (
        "INSERT INTO audit_entry (action, actor_kind, actor_name, subject_kind, subject_id,"
        " reference, rule, before, after, origin) VALUES"
        " ('intent.begun', 'task', '', '', '', %s, '', '{}', '{}', 'task') RETURNING id"
    )
    with psycopg.connect(database_url) as slow, psycopg.connect(database_url) as fast:
        early = slow.execute(insert, ["slow"]).fetchone()
        late = fast.execute(insert, ["fast"]).fetchone()
        assert early
        assert late
        assert early[0] < late[0]
        fast.commit()
        # Nobody waits: neither the chain for the writer nor the writer for the chain.
        assert (chain_extend(), checked()) == (1, [])
        slow.commit()
    assert chain_extend() == 1
    assert list(Link.objects.values_list("position", "entry_id")) == [(1, late[0]), (2, early[0])]
    assert checked() == []


def test_what_is_rolled_back_is_neither_written_nor_chained() -> None:
    with transaction.atomic():
        written()
        transaction.set_rollback(True)
    assert (chain_extend(), Entry.objects.count(), Unlinked.objects.count()) == (0, 0, 0)


def test_of_two_tasks_at_once_one_does_nothing() -> None:
    written(2)
    made: list[int] = []

    def other() -> None:
        made.append(chain_extend())
        connection.close()

    with transaction.atomic():
        assert chain._alone()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
    assert (made, chain_extend()) == ([0], 2)


# Nobody changes it


@pytest.mark.parametrize("table", ["audit_entry", "audit_link"])
@pytest.mark.parametrize("change", ["UPDATE {} SET at = now()", "DELETE FROM {}"])
def test_the_database_refuses_to_change_or_delete(table: str, change: str) -> None:
    written()
    chain_extend()
    for sql in (change, change + " WHERE false"):
        with pytest.raises(Exception, match="only ever added to"), connection.cursor() as cursor:
            cursor.execute(sql.format(table))
    assert checked() == []


@pytest.mark.parametrize("table", ["audit_entry", "audit_link"])
def test_the_database_refuses_to_truncate(table: str, database_url: str) -> None:
    """The tests' own flush has this one trigger off; here it is as the migration leaves it."""
    with psycopg.connect(database_url) as session:
        session.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_whole")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(f"TRUNCATE {table}")
        session.rollback()


def test_a_session_that_plays_a_replica_is_refused_too(database_url: str) -> None:
    written()
    with psycopg.connect(database_url) as session:
        session.execute("SET session_replication_role = replica")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("DELETE FROM audit_entry")
        session.rollback()


def test_the_orm_is_refused() -> None:
    written()
    entry = Entry.objects.get()
    for change in (
        lambda: Entry.objects.update(rule="x"),
        entry.save,
        entry.delete,
        lambda: Entry.objects.all().delete(),
    ):
        with pytest.raises(Exception, match="only ever added to"):
            change()


# Tampering by whoever owns the database


PUT_IN = (
    "INSERT INTO audit_entry (at, action, actor_kind, actor_name, subject_kind, subject_id,"
    " reference, rule, before, after, origin) VALUES (now() {} interval '1 day', 'review.approved',"
    " 'person', 'lea', '', '', 'never', '', '{{}}', '{{}}', 'web')"
)
CHANGED = "Entry {2} (link 2) is not what was signed"
TAMPERING = {
    "a changed amount": ("UPDATE audit_entry SET after = '[1]' WHERE id = {2}", CHANGED),
    "a changed actor": ("UPDATE audit_entry SET actor_name = 'leo' WHERE id = {2}", CHANGED),
    "a changed time": ("UPDATE audit_entry SET at = at - interval '1 s' WHERE id = {2}", CHANGED),
    "a deleted entry": (
        "DELETE FROM audit_entry WHERE id = {2}",
        "Entry {2} (link 2) is missing: it was deleted after it was chained.",
    ),
    "an entry deleted with its link": (
        "DELETE FROM audit_entry WHERE id = {2}; DELETE FROM audit_link WHERE position = 2",
        "Link 2 is missing from the chain.",
    ),
    "an entry deleted, and the rest moved up": (
        (
            "DELETE FROM audit_entry WHERE id = {2}; DELETE FROM audit_link WHERE position = 2;"
            " UPDATE audit_link SET position = position - 1 WHERE position > 2"
        ),
        "Link 2 does not follow link 1",
    ),
    "two entries in each other's place": (
        (
            "UPDATE audit_link SET entry_id = 0 WHERE position = 2;"
            " UPDATE audit_link SET entry_id = {2} WHERE position = 3;"
            " UPDATE audit_link SET entry_id = {3} WHERE position = 2"
        ),
        "Entry {3} (link 2) is not what was signed",
    ),
    "two links in each other's place": (
        (
            "UPDATE audit_link SET position = 0 WHERE position = 2;"
            " UPDATE audit_link SET position = 2 WHERE position = 3;"
            " UPDATE audit_link SET position = 3 WHERE position = 0"
        ),
        "Link 2 does not follow link 1",
    ),
    "a link signed with another key": (
        "UPDATE audit_link SET digest = repeat('a', 64) WHERE position = 2",
        "Link 3 does not follow link 2",
    ),
    "a link put in for an entry put in": (
        PUT_IN.format("-") + "; INSERT INTO audit_link (position, entry_id, previous, digest)"  # noqa: S608 — constants
        " SELECT 6, e.id, l.digest, repeat('a', 64) FROM audit_link l, audit_entry e"
        " WHERE l.position = 5 AND e.reference = 'never'",
        "(link 6) is not what was signed",
    ),
    "an entry put in and dated back": (PUT_IN.format("-"), "is in no chain"),
    "an entry put in and dated ahead": (PUT_IN.format("+"), "is in no chain"),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_tampering_is_found(name: str, tamper: Callable[..., None]) -> None:
    ids = dict(enumerate(written(5), 1))
    chain_extend()
    assert checked() == []
    sql, said = TAMPERING[name]
    for number, entry_id in ids.items():
        sql, said = (text.replace(f"{{{number}}}", str(entry_id)) for text in (sql, said))
    tamper(sql)
    assert said in "\n".join(checked())


def test_an_end_that_was_cut_off_is_found_against_a_head_that_was_kept(
    tamper: Callable[..., None],
) -> None:
    ids = written(4)
    chain_extend()
    kept = chain_head()
    assert checked(kept) == []
    tamper(
        "WITH gone AS (DELETE FROM audit_link WHERE position > 2)"
        " DELETE FROM audit_entry WHERE id > %s",
        ids[1],
    )
    assert checked() == []
    assert checked(kept) == [
        "The chain ends at 2, but the given head is at 4: its end was cut off."
    ]


def test_a_chain_that_was_written_anew_is_found_against_a_head_that_was_kept(
    tamper: Callable[..., None],
) -> None:
    """Somebody has the key, too: then only a head that is kept elsewhere tells."""
    written(2)
    chain_extend()
    kept = chain_head()
    tamper("WITH gone AS (DELETE FROM audit_link) UPDATE audit_entry SET actor_name = 'leo'")
    Unlinked.objects.bulk_create(
        [Unlinked(entry_id=pk) for pk in Entry.objects.values_list("pk", flat=True)]
    )
    chain_extend()
    assert checked() == []
    assert checked(kept) == ["Link 2 is not the one of the given head: the chain was written anew."]


def test_what_is_deleted_before_it_was_chained_leaves_its_mark(tamper: Callable[..., None]) -> None:
    (only,) = written()
    tamper("DELETE FROM audit_entry")
    assert (chain_extend(), checked()) == (
        0,
        [f"Entry {only} is missing: it was deleted before it was chained."],
    )


def test_another_key_verifies_nothing(settings: Any) -> None:
    written()
    chain_extend()
    settings.AUDIT_KEY = "another key than the one it was signed with"
    assert "is not what was signed" in checked()[0]


def test_the_look_of_times_and_numbers_in_a_session_changes_no_signature() -> None:
    written()
    chain_extend()
    with connection.cursor() as cursor:
        cursor.execute("SET TIME ZONE 'Asia/Tokyo'; SET datestyle = 'German'")
    try:
        assert checked() == []
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET TIME ZONE; RESET datestyle")


# The commands


def verified(*arguments: str) -> tuple[str, int]:
    """Run the command and return what it prints and how it exits."""
    out = StringIO()
    try:
        call_command("verify_audit", *arguments, stdout=out)
    except SystemExit as end:
        return out.getvalue(), int(str(end.code))
    return out.getvalue(), 0


def test_the_check_exits_with_1_and_names_what_it_found(tamper: Callable[..., None]) -> None:
    (only,) = written()
    chain_extend()
    assert verified()[1] == 0
    tamper("DELETE FROM audit_entry")
    text, code = verified()
    assert f"Entry {only} (link 1) is missing" in text
    assert ("1 links checked, 1 findings" in text, code) == (True, 1)


def test_what_is_young_and_not_chained_is_told_and_no_finding(tamper: Callable[..., None]) -> None:
    written()
    text, code = verified()
    assert ("1 not chained yet: younger than a minute." in text, code) == (True, 0)
    tamper("UPDATE audit_entry SET at = now() - interval '61 s'")
    text, code = verified()
    assert ("is in no chain" in text, code) == (True, 1)


def test_the_head_that_is_printed_and_the_one_in_the_file_are_taken_back(
    settings: Any, tmp_path: Any, tamper: Callable[..., None]
) -> None:
    settings.AUDIT_HEAD_FILE = str(tmp_path / "head")
    written(2)
    chain_extend()
    out = StringIO()
    call_command("audit_head", stdout=out)
    printed = out.getvalue().split()[0]
    assert (tmp_path / "head").read_text().split()[0] == printed == str(chain_head())
    assert verified("--head", printed)[1] == 0
    tamper(
        "DELETE FROM audit_link WHERE position = 2;"
        " DELETE FROM audit_entry WHERE id = (SELECT max(id) FROM audit_entry)"
    )
    text, code = verified()
    assert ("its end was cut off" in text, code) == (True, 1)
    settings.AUDIT_HEAD_FILE = ""
    assert verified("--head", printed)[1] == 1
    text, code = verified()
    assert ("an end that was cut off cannot be seen" in text, code) == (True, 0)
    with pytest.raises(Exception, match="looks like POSITION:HASH"):
        call_command("verify_audit", "--head", "2", stdout=out)


def test_a_head_file_that_cannot_be_written_keeps_nobody_from_chaining(
    settings: Any, tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.AUDIT_HEAD_FILE = str(tmp_path / "nowhere" / "head")
    written()
    assert chain_extend() == 1
    assert "audit.head_unwritten" in caplog.messages
