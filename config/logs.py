"""The log line: time, level, event name, then the fields that came with it, as text or as JSON."""

import json
import logging
import time
from datetime import UTC, datetime

from agent_core.runs.logged import log_fields

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}
# Django, Celery and uvicorn add objects of their own, which are no fields of ours.
_FOREIGN = frozenset(
    {"request", "status_code", "server_time", "sender", "context", "color_message"}
)


class RunFilter(logging.Filter):
    """Put the run that is worked on here on every line, those of libraries too.

    It hangs on the handlers: what hangs on a logger sees that logger's own lines only.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields and let every line pass."""
        bound = dict(log_fields())
        named = vars(record).pop("run", None)
        if named is not None:
            # A line that names a run itself means that one: a sweep speaks of many.
            bound = bound if bound.get("run_id") == named else {"run_id": named}
        for key, value in bound.items():
            vars(record).setdefault(key, value)
        return True


class ReferenceFilter(logging.Filter):
    """Put the reference that a page of failure has shown on the line of that failure."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the field and let every line pass."""
        shown = getattr(getattr(record, "request", None), "failure_reference", None)
        if shown is not None:
            vars(record).setdefault("reference", shown)
        return True


class ProbeFilter(logging.Filter):
    """Drop Django's error at each probe of a product that is not ready; a change has its line."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the line is anything else."""
        path = getattr(getattr(record, "request", None), "path", "")
        return (path, getattr(record, "status_code", None)) != ("/readyz", 503)


class FieldsFormatter(logging.Formatter):
    """Write `extra={...}` as `key=value` after the event name, in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line without a trace, which the base class appends."""
        fields = " ".join(f"{key}={_quoted(value)}" for key, value in _fields(record).items())
        line = super().formatMessage(record)
        return f"{line} {fields}" if fields else line


class JsonFormatter(logging.Formatter):
    """Write one JSON object a line: time in UTC, level, logger, event, the fields, the trace."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a field never takes the place of what every line has."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        fields = {key: _plain(value) for key, value in _fields(record).items()}
        return json.dumps({**fields, **line}, ensure_ascii=False)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {
        key: value
        for key, value in vars(record).items()
        if key not in _KNOWN and key not in _FOREIGN
    }


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _quoted(value: object) -> str:
    text = str(value)
    # A line break in a value could forge a log line.
    return repr(text) if any(sign.isspace() or ord(sign) < 32 for sign in text) else text
