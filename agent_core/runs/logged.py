"""Which run the present work is for: bound when work on it begins, cleared when it ends.

A context variable: it goes along into the threads that LangGraph runs steps and tools in, and two
runs that are worked on side by side are never mixed. Whoever writes the log reads `log_fields`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar
from uuid import UUID

if TYPE_CHECKING:
    # Settings load this before there are models.
    from agent_core.runs.models import Run

Params = ParamSpec("Params")
ResultT = TypeVar("ResultT")

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_fields: ContextVar[Mapping[str, Any]] = ContextVar("run_log_fields", default=_NOTHING)


def log_fields() -> Mapping[str, Any]:
    """Return the fields of the run that is worked on here; empty outside of one."""
    return _fields.get()


@contextmanager
def logged(run_id: UUID) -> Iterator[None]:
    """Let every line that is logged in the body carry the run's id."""
    before = _fields.set({"run_id": str(run_id)})
    try:
        yield
    finally:
        _fields.reset(before)


def run_logged(
    work: Callable[Concatenate[UUID, Params], ResultT],
) -> Callable[Concatenate[UUID, Params], ResultT]:
    """Let every line that is logged while `work` runs carry the id it was given."""

    @wraps(work)
    def bound(run_id: UUID, /, *args: Params.args, **options: Params.kwargs) -> ResultT:
        with logged(run_id):
            return work(run_id, *args, **options)

    return bound


def claim_logged(run: Run) -> None:
    """Add conversation and attempt for the rest of the work; the run's end clears them too."""
    claim = {"conversation_id": str(run.conversation_id), "attempt": run.attempt}
    _fields.set({**_fields.get(), **claim, "run_id": str(run.pk)})
