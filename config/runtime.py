"""The runtime file: what the launcher tells `manage.py` commands about the running product."""

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from config.home import home

NAME = "runtime.json"


@dataclass(frozen=True)
class Process:
    """A process by its id and its start time; an id alone may have been given to another."""

    name: str
    pid: int
    started: float


@dataclass(frozen=True)
class Runtime:
    """The addresses and processes of one running product."""

    web_url: str = ""
    database_url: str = ""
    redis_url: str = ""
    sandbox_url: str = ""
    processes: list[Process] = field(default_factory=list)


def path(folder: Path | None = None) -> Path:
    """Return where the runtime file lies."""
    return (folder or home()) / NAME


def read(folder: Path | None = None) -> Runtime | None:
    """Return the runtime file's content, or None when there is none that can be read."""
    try:
        data: dict[str, Any] = json.loads(path(folder).read_text("utf-8"))
        processes = [Process(**item) for item in data.pop("processes")]
        return Runtime(processes=processes, **data)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write(runtime: Runtime, folder: Path | None = None) -> None:
    """Replace the runtime file in one step, so that no reader sees half of it."""
    target = path(folder)
    # mkstemp makes the file private: an address may hold a password.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".runtime-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(asdict(runtime), file, indent=2)
    os.replace(name, target)


def remove(folder: Path | None = None) -> None:
    """Remove the runtime file: nothing runs any more."""
    path(folder).unlink(missing_ok=True)
