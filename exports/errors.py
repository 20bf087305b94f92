"""Why an export is refused, fails or is left alone. Messages are sentences for staff."""

from __future__ import annotations

from typing import ClassVar

from agent_core.errors import CountersignError


class ExportRefused(CountersignError):
    """This cannot be exported."""

    code: ClassVar[str] = "export.refused"


class ExportInvalid(ExportRefused):
    """Something about the request is not clear: kind, format or currency."""

    code = "export.invalid"


class ExportTooLarge(ExportRefused):
    """The format cannot hold that many rows; another one can."""

    code = "export.too_large"


class ExportEmpty(ExportRefused):
    """There is nothing to export."""

    code = "export.empty"


class ExportNotAllowed(ExportRefused):
    """Your role may not export. Nothing was exported."""

    code = "right.missing"


class ExportNotFound(ExportRefused):
    """There is no such export."""

    code = "export.not_found"


class ExportFinished(ExportRefused):
    """This export has already ended."""

    code = "export.finished"


class ExportGone(ExportRefused):
    """The file of this export cannot be fetched any more."""

    code = "export.gone"


class ExportNotReady(ExportRefused):
    """This export is still being prepared."""

    code = "export.not_ready"
    retryable = True


class ExportTaken(CountersignError):
    """Somebody cancelled this export, or another worker has it; write nothing more."""

    code = "export.taken"


class ExportBroken(CountersignError):
    """The file would not hold what was asked; its message is the reason that staff read."""

    code = "export.broken"
