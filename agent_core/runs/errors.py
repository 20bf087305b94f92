"""What the durable host refuses, in sentences for the person."""

from __future__ import annotations

from agent_core.errors import CountersignError


class NotFound(CountersignError):
    """There is nothing here that you can see."""

    code = "not_found"


class MessageRefused(CountersignError):
    """The message cannot be sent as it is."""

    code = "message.refused"


class MessageTaken(CountersignError):
    """The message no longer waits in line."""

    code = "message.taken"


class StopModeRefused(CountersignError):
    """The answers cannot be ended in this way."""

    code = "stop_mode.refused"


class RunRefused(CountersignError):
    """This cannot be done with this request now."""

    code = "run.refused"
