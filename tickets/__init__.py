"""Tickets and their notes."""
