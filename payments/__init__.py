"""Customers, invoices, payments, refunds and the ledger."""
