"""Named places where a process may die: before and after each commit, outside call and enqueue.

A place costs one comparison. Nothing of the product puts an action here; the tests that kill and
stall processes do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias, cast

Act: TypeAlias = Callable[[str], None]

Marked: TypeAlias = "AbstractContextManager[None, None]"
"""Lets every error through, which a checker must know where a body returns."""

_act: Act | None = None


def install(act: Act | None) -> None:
    """Let `act` be called with the name of each place that is reached; None takes it away."""
    global _act
    _act = act


def point(name: str) -> None:
    """Mark a place."""
    if _act is not None:
        _act(name)


def around(name: str) -> Marked:
    """Mark the places before and after an outside call or an enqueue.

    The second one is not reached when the body raises.
    """
    return cast("Marked", _around(name))


def commit(name: str, transaction: AbstractContextManager[object]) -> Marked:
    """Run the body in a transaction and mark the places before and after its commit."""
    return cast("Marked", _commit(name, transaction))


@contextmanager
def _around(name: str) -> Iterator[None]:
    point(f"{name}:before")
    yield
    point(f"{name}:after")


@contextmanager
def _commit(name: str, transaction: AbstractContextManager[object]) -> Iterator[None]:
    with transaction:
        yield
        point(f"{name}:before")
    point(f"{name}:after")
