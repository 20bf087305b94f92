"""Plays forced outcomes through both orchestrations, without Django or a database, and compares
what happened with golden transcripts. Run it with `python -m agent_core.harness`."""
