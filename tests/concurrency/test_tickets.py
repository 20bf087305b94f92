"""The same wish on two connections at once makes one ticket."""

from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from agent_core.contract import RunContext
from tests.rig.threads import Meeting, at_once
from tickets.models import Ticket
from tickets.tools import ticket_create


@pytest.mark.django_db(transaction=True)
def test_two_calls_that_mean_the_same_open_one_ticket(settings: Any) -> None:
    """Both look for an earlier ticket, find none, and meet at the fence before they insert."""
    settings.TICKET_PAYMENT_RESOLVER = ""
    ana, conversation_id = User.objects.create_user("ana"), uuid4()
    meet = Meeting()

    def call() -> Any:
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
        return ticket_create(context, subject="Box crushed")

    results = at_once(call, call)
    ticket = Ticket.objects.get()
    assert sorted(artifact["already_applied"] for _text, artifact in results) == [False, True]
    assert {artifact["data"]["ticket"] for _text, artifact in results} == {ticket.reference}
