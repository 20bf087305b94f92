"""Run the same thing on several real connections at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection

T = TypeVar("T")


def together(*jobs: Callable[[], T]) -> list[T | Exception]:
    """Run each job in a thread with a connection of its own; return results or exceptions."""

    def run(job: Callable[[], T]) -> T | Exception:
        try:
            return job()
        except Exception as error:  # noqa: BLE001 - handed to the test
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))
