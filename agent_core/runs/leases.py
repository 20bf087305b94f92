"""Keeps the leases of every run of this process: one thread, and one statement for all."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final

from django.conf import settings
from django.db import Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agent_core.errors import StaleAttempt
from agent_core.runs import claims, drain
from agent_core.runs.claims import run_hand_back
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Run

logger = logging.getLogger(__name__)

ALIAS: Final = "leases"

CONNECT_SECONDS: Final = 2
"""How long the keeper tries to connect; it tries again at its next look."""

LOOK_SECONDS: Final = 1.0
"""How often the keeper looks whether a model call shall be abandoned."""


class Keeper:
    """Renews three times in a lease's life; tells a host when its run belongs to somebody else."""

    def __init__(self) -> None:
        # By claim, not by run: one that was handed back may be claimed here again meanwhile.
        self._held: dict[DjangoHost, tuple[Run, DjangoHost]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._renewed = 0.0

    @contextmanager
    def kept(self, run: Run, host: DjangoHost) -> Iterator[None]:
        """Keep the lease of a claimed run while the body works."""
        with self._lock:
            self._held[host] = (run, host)
            if self._thread is None:
                self._renewed = time.monotonic()
                self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(host, None)

    def handed_back(self) -> int:
        """Count the runs that were handed back and whose thread still waits for the model."""
        with self._lock:
            return sum(host.lost and host.thinking for _run, host in self._held.values())

    def _keep(self) -> None:
        """Look after what is held until nothing is."""
        session = _session()
        while True:
            time.sleep(min(LOOK_SECONDS, settings.RUN_LEASE_SECONDS / 3))
            with self._lock:
                held = list(self._held.values())
                if not held:
                    self._thread = None
                    break
            try:
                self._look(held, session)
            except Exception:  # The boundary of the thread: without it every lease would run out.
                logger.warning("run.leases_not_renewed", extra={"runs": len(held)}, exc_info=True)
                _closed(session)
            finally:
                _closed(connection)
        _closed(session)

    def _look(
        self, held: list[tuple[Run, DjangoHost]], session: BaseDatabaseWrapper | None = None
    ) -> None:
        if drain.leaving():
            for run, host in held:
                self._abandon(run, host)
            if self.handed_back():
                _when_handed_back()
        if time.monotonic() - self._renewed < settings.RUN_LEASE_SECONDS / 3:
            return
        mine = {run.pk: run.attempt for run, host in held if not host.lost}
        gone = claims.leases_renew(mine, session)
        self._renewed = time.monotonic()
        for run, host in held:
            host.lost = host.lost or run.pk in gone
        # As the sweep does: the dead need not wait until beat or its worker, dead as well, is back.
        claims.leases_return()

    def _abandon(self, run: Run, host: DjangoHost) -> None:
        """Hand a run back that waits for a model: a silent provider cannot be waited for."""
        if host.thinking and not host.lost:
            try:
                run_hand_back(run)
            except StaleAttempt:
                # It ended, or is somebody else's, meanwhile.
                pass
            except Error:
                # The row still says that it runs here, so nobody may count on it: look again.
                logger.warning("run.not_handed_back", extra={"run": str(run.pk)})
                return
            host.lost = True


def _session() -> BaseDatabaseWrapper:
    """Return a connection of the keeper's own.

    It waits for no place in the pool: ten threads that wait for a lock must not cost every run of
    the process its lease.
    """
    own = connection.copy(alias=ALIAS)
    options = own.settings_dict["OPTIONS"]
    own.settings_dict["OPTIONS"] = {**options, "pool": None, "connect_timeout": CONNECT_SECONDS}
    # Of this thread only; Django looks a connection up by its name when it connects.
    connections[ALIAS] = own
    return own


def _closed(session: Any) -> None:
    with suppress(Error):
        session.close()


_keeper = Keeper()


def _nothing() -> None:
    """Be told, and do nothing."""


_when_handed_back: Callable[[], None] = _nothing


def _anew() -> None:
    """Begin with nothing: the parent's thread does not live on in a child."""
    global _keeper
    _keeper = Keeper()


os.register_at_fork(after_in_child=_anew)


def handed_back() -> int:
    """Count the threads of this process that only wait for a model, their run handed back.

    Such a thread can be left behind: when the model answers after all, the first thing it does is
    to find its run lost, and every write of it is fenced.
    """
    return _keeper.handed_back()


def when_handed_back(act: Callable[[], None]) -> None:
    """Do something each time a look leaves threads behind that only wait for a model.

    It is done in the keeper's thread.
    """
    global _when_handed_back
    _when_handed_back = act


def lease_kept(run: Run, host: DjangoHost) -> AbstractContextManager[None]:
    """Keep the lease of a claimed run while the body works."""
    return _keeper.kept(run, host)
