"""A turn late in a conversation costs what an early one does: counted, with no clock."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from agent_core.runs.models import Conversation, Event, Message
from tests.bench.cost import TARGET, conversation_at, page_opened, turn_played

EARLY, MIDDLE = 10, 60


def at(owner: User, turn: int) -> Conversation:
    """Return a conversation at this turn, and see that it is as long as that."""
    conversation = conversation_at(owner, turn)
    assert Message.objects.filter(conversation=conversation, role="staff").count() == turn - 1
    assert Event.objects.filter(conversation=conversation).count() > 5 * turn
    return conversation


@pytest.mark.parametrize("turn", [200, pytest.param(1_000, marks=pytest.mark.full)])
def test_b12_a_late_turn_costs_what_the_tenth_does_and_opens_as_small_a_page(
    turn: int, tom: User
) -> None:
    early, late = at(tom, EARLY), at(tom, turn)
    first, last = turn_played(early), turn_played(late)

    assert 0 < last.queries <= TARGET * first.queries
    assert 0 < last.checkpoint_bytes <= TARGET * first.checkpoint_bytes
    # The window is full at the tenth turn, so what the model reads is the same.
    assert (last.messages_read, last.characters_read) == (
        first.messages_read,
        first.characters_read,
    )

    # A page shows so many turns and no more; the tenth turn's page has not come to that yet.
    middle = page_opened(at(tom, MIDDLE))
    opened = page_opened(late)
    assert opened.queries <= TARGET * page_opened(early).queries
    assert opened.size <= TARGET * middle.size
