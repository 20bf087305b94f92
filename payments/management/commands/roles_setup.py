"""Make the product's roles; a step of every deployment, after `migrate`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from payments.roles import RightsMissing, RoleSet, roles_setup


class Command(BaseCommand):
    """`roles_setup`: makes each role or gives it the rights it lacks, and prints a line for it."""

    help = "Make the roles with their rights; a second time changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        """Set up all roles or none.

        Raises:
            CommandError: the database lacks rights that a role names.
        """
        try:
            roles = roles_setup()
        except RightsMissing as error:
            text = _("{problem} Run migrate first. No role was changed.")
            raise CommandError(text.format(problem=error)) from None
        for role in roles:
            self.stdout.write(_line(role))


def _line(role: RoleSet) -> str:
    rights = ngettext("{count} right", "{count} rights", role.rights).format(count=role.rights)
    line = _("{role}: {rights}, {given} of them new").format(
        role=role.name, rights=rights, given=role.given
    )
    if role.added_by_hand:
        line += _("; {count} more, added by hand, left as they are").format(
            count=role.added_by_hand
        )
    return f"{line}."
