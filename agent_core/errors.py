"""Errors of the core. Each has a code, typed data and says whether trying again can help."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import ClassVar, Final

_REFERENCE_LETTERS: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"


def reference_new() -> str:
    """Return a short reference that leads from a sentence for staff to the full log line."""
    return "E-" + "".join(secrets.choice(_REFERENCE_LETTERS) for _ in range(8))


class CountersignError(Exception):
    """Base of every error of ours; its docstring is the default message."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str | None = None, **data: str | int | None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())
        self.data: Mapping[str, str | int | None] = data


class ContractBroken(CountersignError):
    """A tool, an outcome or a registration does not keep the contract."""

    code = "contract.broken"


class ControlError(CountersignError):
    """Base of the errors that steer a run. The tool boundary lets them pass."""

    code = "control"


class StaleAttempt(ControlError):
    """Another worker has taken this run over; this one may write nothing more."""

    code = "run.stale_attempt"


class RunCancelled(ControlError):
    """A person asked this run to stop, and it has reached a safe point."""

    code = "run.cancelled"


class RunDrained(ControlError):
    """The worker is leaving and hands the run back between two steps."""

    code = "run.drained"
    retryable = True


class ModelFailed(CountersignError):
    """The model gave no usable answer."""

    code = "model.failed"


class ModelEmpty(ModelFailed):
    """The model answered with neither text nor a call."""

    code = "model.empty"


class ModelUnavailable(ModelFailed):
    """The model's service did not answer in time or refused the request."""

    code = "model.unavailable"
    retryable = True
