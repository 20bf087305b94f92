"""Servers, processes and threads for tests: one way to start, wait for and end each of them.

`waiting.py`: until something holds, with a deadline. `threads.py`: callers on connections of their
own, at one barrier, and what came of each.
"""
