"""Servers, processes and threads for tests: one way to start each, to wait for it and to end it.

| module | holds |
| --- | --- |
| `waiting.py` | `until`: look until something holds, with a deadline |
| `threads.py` | callers on connections of their own, at one barrier, and what came of each |
| `servers.py` | a Postgres and a Redis in a folder: start, stop, kill, restart |
| `sessions.py` | sessions of a Postgres, counted and cut off |
| `processes.py` | one process of ours: its log, signals, kill, leave |
| `product.py` | parts of the product by the launcher's own commands, with a test's variables |
| `spoken.py` | a Python module as a process that answers lines of JSON |
| `forks.py`, `zygote.py` | processes that are forked in milliseconds, to die at a fault point |
"""
