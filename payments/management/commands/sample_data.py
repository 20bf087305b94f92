"""Load the sample data of the demo: roles, accounts, teams, customers, payments, help articles."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from payments.roles import RightsMissing, roles_setup
from payments.samples.accounts import accounts_load
from payments.samples.cast import NORTH, SOUTH
from payments.samples.loading import sample_rows
from payments.samples.rows import rows_store, team_named


class Command(BaseCommand):
    """`sample_data`: loads once; what has happened to the records since then stays."""

    help = "Load the sample data of the demo; a second time changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        """Load everything or nothing.

        Raises:
            CommandError: this is no demo: its accounts have a password that everybody knows; or
                the roles cannot be made.
        """
        if not settings.DEMO:
            raise CommandError(_("Sample data exists under the demo settings only."))
        with transaction.atomic():
            _roles()
            teams = {name: team_named(name) for name in (NORTH, SOUTH)}
            accounts = accounts_load(teams)
            new = rows_store(sample_rows(teams, timezone.localdate()))
        for path in getattr(settings, "SAMPLE_LOADERS", ()):
            import_string(path)()
        self.stdout.write(
            _(
                "Sample data: {accounts} accounts, {customers} customers, {payments} payments, "
                "{refunds} refunds and {invoices} open invoices are new."
            ).format(
                accounts=accounts,
                customers=new.customers,
                payments=new.payments,
                refunds=new.refunds,
                invoices=new.invoices,
            )
        )


def _roles() -> None:
    try:
        roles_setup()
    except RightsMissing as error:
        raise CommandError(str(error)) from None
