"""Exports: how long a finished file can be fetched."""

from config import env

EXPORT_HOURS = env.number("EXPORT_HOURS", 24, minimum=1, maximum=24 * 365)
