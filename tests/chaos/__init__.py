"""Chaos: many conversations on real processes that are killed, stopped and cut off at random."""
