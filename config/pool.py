"""The pools of our workers: on leaving they wait for work that counts, not for silent models.

Celery's own wait for every thread or child, and so does the interpreter at its end. A thread whose
run has been handed back does nothing more than wait for a provider's answer that nobody will read.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final

from celery.concurrency.prefork import TaskPool as ForkPool
from celery.concurrency.thread import TaskPool as ThreadPool

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 0.2


class TaskPool(ThreadPool):
    """Celery's thread pool, told what it need not wait for."""

    executor: ThreadPoolExecutor

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tasks: set[Future[Any]] = set()

    def on_apply(self, *args: Any, **options: Any) -> Any:
        """Start a task, and know of it until it is done."""
        result = super().on_apply(*args, **options)
        self._tasks.add(result.f)
        result.f.add_done_callback(self._tasks.discard)
        return result

    def on_stop(self) -> None:
        """Wait for every task but those whose run was handed back in mid-call of a model.

        The consumer is closed by now: what was taken from the queue and not begun is back in it.
        """
        self.executor.shutdown(wait=False, cancel_futures=True)
        while len(left := set(self._tasks)) > _handed_back():
            wait(left, timeout=LOOK_SECONDS)


class ChildPool(ForkPool):
    """Celery's pool of child processes, whose children do not wait for a silent model either."""

    def on_start(self) -> None:
        """Start the children; have each task done beside the thread that speaks to the parent."""
        super().on_start()
        begin = self.on_apply

        def on_apply(
            target: Callable[..., Any],
            args: Sequence[Any] = (),
            kwargs: Mapping[str, Any] | None = None,
            **options: Any,
        ) -> Any:
            return begin(beside, (target, args, kwargs or {}), {}, **options)

        # Celery puts the children's own there when they have started.
        self.on_apply = on_apply  # type: ignore[method-assign]


NOTHING: Final = (0, None, 0.0)
"""What a child tells of a task that has come to nothing: it did not fail, and took no time."""


def beside(target: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a task in a thread of its own; return what it did, or nothing once it is left behind."""
    from agent_core.runs import leases

    over = threading.Event()
    leases.when_handed_back(over.set)
    done = ThreadPoolExecutor(1, "task").submit(target, *args, **kwargs)
    done.add_done_callback(lambda _done: over.set())
    over.wait()
    if done.done():
        return done.result()
    log.info("task.left", extra={"handed_back": _handed_back()})
    return NOTHING


def _handed_back() -> int:
    from agent_core.runs.leases import handed_back

    return handed_back()


def leave_at_once() -> None:
    """End the process if nothing but handed-back work is left in it; it would be joined for long.

    Call it last: nothing that is registered for the end of the process runs.
    """
    left = _handed_back()
    if not left:
        return
    log.info("worker.left", extra={"handed_back": left})
    logging.shutdown()
    os._exit(os.EX_OK)
