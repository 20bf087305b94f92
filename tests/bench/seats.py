"""Seats people at their desks: `seats N` makes them, `send N` lets each of them send a message.

Every person has an account, a session and a conversation of their own. Prints JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Final
from uuid import uuid4

NAME: Final = "bench-"


def seats_make(count: int) -> list[dict[str, str]]:
    """Make so many support agents, each signed in and with an empty conversation."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    from agent_core.runs.services import conversation_start

    model = User.objects.get(username="agent")
    made = []
    for number in range(count):
        person = User.objects.create_user(f"{NAME}{number:03}", is_staff=model.is_staff)
        person.groups.set(model.groups.all())
        for team in model.teams.all():
            team.members.add(person)
        client = Client()
        client.force_login(person)
        conversation = conversation_start(owner=person)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        made.append({"conversation": str(conversation.pk), "session": session})
    return made


def messages_send(count: int) -> list[str]:
    """Send one message from so many seats, to this process's model; return the runs."""
    from agent_core.runs.models import Conversation
    from agent_core.runs.services import message_send

    seated = Conversation.objects.filter(owner__username__startswith=NAME)
    return [
        str(
            message_send(
                conversation=each, sender=each.owner, text=f"Broken box {uuid4().hex[:12]}"
            ).pk
        )
        for each in seated.select_related("owner").order_by("owner__username")[:count]
    ]


def start(what: str, count: int) -> Any:
    """Do what is asked, with Django set up first."""
    import django

    django.setup()
    return {"seats": seats_make, "send": messages_send}[what](count)


if __name__ == "__main__":
    print(json.dumps(start(sys.argv[1], int(sys.argv[2]))))
