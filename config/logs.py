"""The log line: time, level, event name, then the fields that came with it."""

import logging
import time

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "data"}
# Django and Celery add objects of their own, which are no fields of ours.
_FOREIGN = frozenset({"request", "status_code", "server_time", "sender", "context"})


class FieldsFormatter(logging.Formatter):
    """Write `extra={...}` as `key=value` after the event name, in UTC."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
        self.converter = time.gmtime

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line without a trace, which the base class appends."""
        fields = " ".join(
            f"{key}={_quoted(value)}"
            for key, value in vars(record).items()
            if key not in _KNOWN and key not in _FOREIGN
        )
        line = super().formatMessage(record)
        return f"{line} {fields}" if fields else line


def _quoted(value: object) -> str:
    text = str(value)
    # A line break in a value could forge a log line.
    return repr(text) if any(sign.isspace() or ord(sign) < 32 for sign in text) else text
