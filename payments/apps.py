"""Customers, invoices, payments, refunds and the ledger."""

from django.apps import AppConfig


class PaymentsConfig(AppConfig):
    """Customers, invoices, payments, refunds and the ledger."""

    name = "payments"
    label = "payments"
