"""Savings, measured: the same requests under every stop mode, and what each one did outside."""
