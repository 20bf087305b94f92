"""Load the public retail data set, so that the desk has a thousand real-looking orders."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from payments.samples.cast import NORTH
from payments.samples.retail import RetailUnreadable, retail_read
from payments.samples.retail_rows import retail_rows
from payments.samples.rows import rows_store, team_named


class Command(BaseCommand):
    """`import_retail DIR`: customers, ways to pay, payments, refunds; a second time is nothing."""

    help = "Load the retail data set (db.json) from a folder; a second time changes nothing."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the folder."""
        parser.add_argument("folder", type=Path, help="the folder with db.json")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read everything before anything is stored; one line says what was new.

        Raises:
            CommandError: the folder does not hold the data set.
        """
        try:
            retail = retail_read(options["folder"])
        except RetailUnreadable as error:
            raise CommandError(str(error)) from None
        new = rows_store(retail_rows(retail, team_named(NORTH)))
        self.stdout.write(
            _(
                "Retail data: {people} customers and {orders} orders read; new are {customers} "
                "customers, {methods} ways to pay, {payments} payments, {refunds} refunds and "
                "{invoices} open invoices."
            ).format(
                people=len(retail.people),
                orders=len(retail.orders),
                customers=new.customers,
                methods=new.methods,
                payments=new.payments,
                refunds=new.refunds,
                invoices=new.invoices,
            )
        )
