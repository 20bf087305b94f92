"""The accounts of the demo, each with its role and teams."""

from __future__ import annotations

from django.contrib.auth.models import Group, User

from payments.models import Team
from payments.samples.cast import ACCOUNTS

DEMO_PASSWORD = "demo"  # noqa: S105 - the demo setting alone makes accounts with it


def accounts_load(teams: dict[str, Team]) -> int:
    """Make the demo accounts that are not there yet; one that exists is left as it is."""
    made = 0
    for account in ACCOUNTS:
        if User.objects.filter(username=account.username).exists():
            continue
        user = User(
            username=account.username,
            first_name=account.first_name,
            last_name=account.last_name,
            email=f"{account.username}@desk.example.com",
            is_staff=account.admin_pages,
            is_superuser=account.superuser,
        )
        user.set_password(DEMO_PASSWORD)
        user.save()
        user.groups.add(Group.objects.get(name=account.role))
        for name in account.teams:
            teams[name].members.add(user)
        made += 1
    return made
