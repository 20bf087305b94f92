"""Suites that pick up by themselves whatever is registered."""
