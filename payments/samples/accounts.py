"""Set up roles, and in the demo the accounts that play them."""

from __future__ import annotations

from django.contrib.auth.models import Group, Permission, User

from payments.models import Team
from payments.samples.cast import ACCOUNTS, ROLES

DEMO_PASSWORD = "demo"  # noqa: S105 - the demo setting alone makes accounts with it


def roles_load() -> list[str]:
    """Give each role its rights; return the rights that no installed app defines."""
    wanted = {name for names in ROLES.values() for name in names}
    rights = Permission.objects.select_related("content_type").filter(
        codename__in=[name.partition(".")[2] for name in wanted]
    )
    installed = {f"{right.content_type.app_label}.{right.codename}": right for right in rights}
    for role, names in ROLES.items():
        group, _made = Group.objects.get_or_create(name=role)
        group.permissions.add(*(installed[name] for name in names if name in installed))
    return sorted(wanted - set(installed))


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
