"""The same wish on two connections at once makes one ticket."""

import threading
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connections

from agent_core.contract import RunContext
from tickets.models import Ticket
from tickets.tools import ticket_create


@pytest.mark.django_db(transaction=True)
def test_two_calls_that_mean_the_same_open_one_ticket(settings: Any) -> None:
    """Both look for an earlier ticket, find none, and meet at the fence before they insert."""
    settings.TICKET_PAYMENT_RESOLVER = ""
    ana, conversation_id = User.objects.create_user("ana"), uuid4()
    barrier, results = threading.Barrier(2, timeout=20), []

    def meet() -> None:
        barrier.wait()

    def call() -> None:
        context = RunContext(
            run_id=uuid4(),
            attempt=1,
            conversation_id=conversation_id,
            requester_id=ana.pk,
            requester_name="Ana",
            rights=frozenset(),
            team_ids=frozenset(),
            call_id=uuid4(),
            fence=meet,
        )
        try:
            results.append(ticket_create(context, subject="Box crushed"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    ticket = Ticket.objects.get()
    assert sorted(artifact["already_applied"] for _text, artifact in results) == [False, True]
    assert {artifact["data"]["ticket"] for _text, artifact in results} == {ticket.reference}
