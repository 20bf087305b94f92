"""What a child process must not share with its parent: sessions of the database."""

from __future__ import annotations

import os
from typing import Any, Final

from django.db import connections

_inherited: Final[list[Any]] = []
"""The parent's pools and connections. They are kept: to end one here would end it there as well."""


def register() -> None:
    """Let every child that is forked from now on begin with no connection and no pool."""
    os.register_at_fork(after_in_child=_anew)


def _anew() -> None:
    for wrapper in connections.all(initialized_only=True):
        # Django keeps one pool a process and alias, and does not look which process that is.
        pools: dict[str, Any] = getattr(type(wrapper), "_connection_pools", {})
        _inherited.extend((wrapper.connection, dict(pools)))
        wrapper.connection = None
        pools.clear()
