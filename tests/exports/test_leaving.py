"""A worker that leaves hands its export back."""

import pytest

from agent_core.runs import drain
from exports.services_write import export_write
from exports.states import ExportState
from payments.models import Customer
from tests.exports.conftest import Ask, Mailbox, done, during, files, payments_many

# The snapshot is a connection of its own, so the rows must have been committed.
pytestmark = pytest.mark.django_db(transaction=True)


def test_an_export_is_handed_back_when_its_worker_leaves_and_the_next_one_makes_the_file(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch, mailbox: Mailbox
) -> None:
    """The writer is in the middle; its worker is told to leave; nobody waits for the lease."""
    payments_many(customer, 2000)
    export = ask()
    mailbox.clear()
    during(monkeypatch, 600, drain.leave)
    try:
        assert export_write(export.pk) is False
    finally:
        drain.stay()
    assert done(export).state == ExportState.QUEUED
    assert (export.attempt, export.rows_done, files()) == (1, 500, [])
    assert mailbox.ids() == [str(export.pk)]
    monkeypatch.undo()

    assert export_write(export.pk)
    assert done(export).state == ExportState.READY
    assert (export.attempt, export.rows_done) == (2, export.rows_total)
