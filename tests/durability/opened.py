"""Loaded by a worker before it forks its pool: its parent has everything open that can be shared.

After each task a child writes down which sessions and clients are its own. That goes to the file
which the variable `OPENED` names; the parent writes its own line first.
"""

from __future__ import annotations

import json
import os
from typing import Any
from uuid import uuid4

from celery.signals import task_postrun
from django.db import connection

from agent_core.runs import live
from agent_core.runs.queue import WORK_TASK, task_send
from agent_core.runs.work import saver_pool


def note() -> None:
    """Write down this process and its sessions, as numbered by the servers."""
    connection.ensure_connection()
    with saver_pool().connection() as saver:
        own = {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "django": connection.connection.info.backend_pid,
            "saver": saver.info.backend_pid,
            "redis": live.client().client_id(),
        }
    with open(os.environ["OPENED"], "a", encoding="utf-8") as file:
        file.write(json.dumps(own) + "\n")


def open_all() -> None:
    """Hold a session in this thread and one in each pool, and send the task of no run."""
    task_send(WORK_TASK, str(uuid4()))
    note()


@task_postrun.connect
def note_child(**_: Any) -> None:
    """Say which sessions a child has used."""
    note()
    connection.close()


open_all()
