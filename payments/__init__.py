"""Customers, invoices, payments and refunds, and the ledger through which all money moves."""
