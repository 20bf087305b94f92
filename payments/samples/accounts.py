"""Set up roles, and in the demo the accounts that play them."""

from __future__ import annotations

from django.contrib.auth.models import Group, Permission, User

from payments.models import Team
from payments.samples.cast import ACCOUNTS, ROLES

DEMO_PASSWORD = "demo"  # noqa: S105 - the demo setting alone makes accounts with it


def roles_load() -> list[str]:
    """Give each role its rights; return the rights that no installed app defines."""
    missing: list[str] = []
    for role, names in ROLES.items():
        group, _made = Group.objects.get_or_create(name=role)
        for name in names:
            app, _dot, codename = name.partition(".")
            right = Permission.objects.filter(content_type__app_label=app, codename=codename)
            found = right.first()
            if found is None:
                missing.append(name)
            else:
                group.permissions.add(found)
    return sorted(set(missing))


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
