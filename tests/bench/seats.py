"""Seats people at their browsers: accounts, sessions and conversations, printed as JSON."""

from __future__ import annotations

import json
import sys


def start(count: int) -> None:
    """Make so many support agents, each signed in and with an empty conversation."""
    import django

    django.setup()

    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    from agent_core.runs.services import conversation_start

    model = User.objects.get(username="agent")
    groups, teams = list(model.groups.all()), list(model.teams.all())
    seats = []
    for number in range(count):
        person = User.objects.create_user(f"bench-{number}", is_staff=model.is_staff)
        person.groups.set(groups)
        for team in teams:
            team.members.add(person)
        client = Client()
        client.force_login(person)
        seats.append(
            {
                "conversation": str(conversation_start(owner=person).pk),
                "session": client.cookies[settings.SESSION_COOKIE_NAME].value,
            }
        )
    print(json.dumps(seats))


if __name__ == "__main__":
    start(int(sys.argv[1]))
