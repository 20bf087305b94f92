"""Work one run off: claim it, go on from its checkpoint, and put it into its next state."""

from __future__ import annotations

import logging
import os
import time
from copy import copy
from functools import cache, partial
from typing import Any, Final
from uuid import UUID

import psycopg
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import translation
from django.utils.module_loading import import_string
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot
from psycopg import Cursor
from psycopg.rows import DictRow
from psycopg_pool import PoolTimeout

from agent_core.budget import Limits
from agent_core.chat_models import chat_model
from agent_core.checkpoints import FencedSaver, Pool, pool_open
from agent_core.errors import ModelFailed, RunCancelled, RunDrained, StaleAttempt, reference_new
from agent_core.graph import REPEATABLE, graph_compile, recursion_limit
from agent_core.graph_state import State
from agent_core.host import Parts
from agent_core.runs.claims import run_claim, run_hand_back
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.endings import run_cancelled, run_failed
from agent_core.runs.leases import lease_kept
from agent_core.runs.logged import claim_logged, run_logged
from agent_core.runs.models import Run
from agent_core.runs.services import run_wait
from agent_core.runs.states import RUN_FINAL, RunState
from agent_core.runs.wording import model_failed, refusal, run_broke
from agent_core.toolset import Toolset
from reviews.models import Review
from reviews.states import FINAL as REVIEW_FINAL

logger = logging.getLogger(__name__)

DATABASE_ERRORS = (OperationalError, InterfaceError, psycopg.OperationalError, PoolTimeout)
"""With these the run is left as it is; its lease ends, and it goes on from its checkpoint."""


@cache
def toolset() -> Toolset:
    """Return the tools of every registered toolset."""
    return Toolset(tool for path in settings.TOOLSETS for tool in import_string(path))


@cache
def compiled() -> CompiledStateGraph[State, Parts, State, State]:
    """Return the graph, compiled once: it keeps nothing of a run."""
    return graph_compile(None)


@cache
def saver_pool() -> Pool:
    """Return this process's pool for checkpoints, next to Django's own connections."""
    return pool_open(
        conninfo(),
        size=settings.DATABASE_POOL_SIZE,
        idle_seconds=settings.DATABASE_POOL_IDLE_SECONDS,
    )


def conninfo() -> str:
    """Return the libpq connection string of Django's default database, with all its options."""
    params = connection.get_connection_params()
    # Beside libpq's options Django and psycopg have some of their own, such as the cursor's class.
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    known.discard("client_encoding")
    return psycopg.conninfo.make_conninfo(
        "", **{key: params[key] for key in known & set(params) if params[key] not in (None, "")}
    )


def _anew() -> None:
    """Forget what a parent process had open: two processes must not speak on one socket."""
    saver_pool.cache_clear()


os.register_at_fork(after_in_child=_anew)

FIRST_INPUT: Final[State] = {"batch": []}

INTERRUPT: Final = "__interrupt__"
"""The key under which LangGraph streams that it pauses."""

GIVE_BACK_TRIES = 60
GIVE_BACK_ATTEMPTS = 10


@run_logged
def run_work(run_id: UUID, *, quarantined: bool = False) -> None:
    """Claim a run and work on it until it ends, waits or is taken over."""
    run = _claimed(run_id, quarantined=quarantined)
    if run is None:
        return
    claim_logged(run)
    host = DjangoHost(run, toolset())
    logger.info("run.claimed", extra={"run": str(run.pk), "attempt": run.attempt})
    try:
        with lease_kept(run, host), translation.override(run.language):
            _settle(run, host)
    except StaleAttempt:
        logger.warning("run.taken_over", extra={"run": str(run.pk), "attempt": run.attempt})
    except DATABASE_ERRORS:
        logger.warning("run.database_lost", extra={"run": str(run.pk)}, exc_info=True)
        connection.close()
        _give_back(run)
    finally:
        connection.close()


def _claimed(run_id: UUID, *, quarantined: bool) -> Run | None:
    """Claim the run, as soon as the database answers: its message has been taken already."""
    for _try in range(GIVE_BACK_TRIES):
        try:
            return run_claim(run_id, quarantined=quarantined)
        except DATABASE_ERRORS:
            logger.warning("run.not_claimed", exc_info=True)
            connection.close()
            time.sleep(1)
    return None


def _give_back(run: Run) -> None:
    """Hand the run back once the database answers again: its worker is alive and not suspected.

    A run that meets this again and again is left to its lease, and so to quarantine.
    """
    for _try in range(GIVE_BACK_TRIES if run.attempt < GIVE_BACK_ATTEMPTS else 0):
        time.sleep(1)
        try:
            run_hand_back(run)
        except DATABASE_ERRORS:
            connection.close()
        except StaleAttempt:
            return
        else:
            return


def _settle(run: Run, host: DjangoHost) -> None:
    """Go on with the run; whatever happens, it ends in a state of its own."""
    try:
        if _advance(run, host):
            run_wait(run, host.worked_seconds())
    except (StaleAttempt, *DATABASE_ERRORS):
        raise
    except RunCancelled:
        run_cancelled(run)
    except RunDrained:
        run_hand_back(run)
    except ModelFailed as error:
        reference = reference_new()
        logger.warning(
            "run.model_failed",
            extra={"run": str(run.pk), "reference": reference, "code": error.code},
            exc_info=True,
        )
        run_failed(run, sentence=model_failed(retryable=error.retryable), reference=reference)
    except Exception:  # The boundary of the worker: a run never ends without a record.
        reference = reference_new()
        logger.exception("run.failed", extra={"run": str(run.pk), "reference": reference})
        run_failed(run, sentence=run_broke(), reference=reference)


def _advance(run: Run, host: DjangoHost) -> bool:
    """Stream the graph from where its checkpoint stands; True when it now waits for people."""
    parts = Parts(
        host=host,
        model=chat_model(
            run.model,
            timeout=settings.MODEL_TIMEOUT_SECONDS,
            api_key=settings.GROQ_API_KEY or None,
        ),
        toolset=toolset(),
        limits=Limits(**settings.RUN_LIMITS),
        stop_mode=run.stop_mode,
        passes=DATABASE_ERRORS,
    )
    graph = copy(compiled())
    fence = partial(_fence, run.pk, run.attempt)
    begun = run.attempt > 1
    graph.checkpointer = FencedSaver(saver_pool(), fence, repeatable=REPEATABLE, begun=begun)
    config: RunnableConfig = {
        "configurable": {"thread_id": str(run.pk)},
        "recursion_limit": recursion_limit(parts.limits),
    }
    begin: Any = FIRST_INPUT
    if begun:
        host.safe_point()
        state = graph.get_state(config)
        if _still_asked(run.pk, state):
            # A worker died between the pause and the row that says so: nothing is decided yet.
            return True
        begin = _begin(run, state)
    paused = False
    for step in graph.stream(
        begin, config, context=parts, stream_mode="updates", durability="sync"
    ):
        paused = paused or INTERRUPT in step
    return paused


def _still_asked(run_id: UUID, state: StateSnapshot) -> bool:
    """Tell whether the graph pauses for calls of which not every one is decided."""
    calls = state.interrupts[0].value["calls"] if state.interrupts else []
    return len(decisions(run_id, calls)) < len(calls)


def _begin(run: Run, state: StateSnapshot) -> Any:
    """Return what the graph is given: a first input, the decisions, or nothing to go on with."""
    if state.created_at is None:
        return FIRST_INPUT
    if state.interrupts:
        # The same rows give the same answer, so a second resume after a crash is harmless. It is
        # wrapped, because a bare map of ids would be taken for LangGraph's own interrupt map.
        return Command(resume={"decisions": decisions(run.pk, state.interrupts[0].value["calls"])})
    return None


def decisions(run_id: UUID, calls: list[str]) -> dict[str, dict[str, Any]]:
    """Return what was finally decided about each waiting call, from the review rows."""
    reviews = Review.objects.filter(
        run_id=run_id, call_id__in=calls, state__in=REVIEW_FINAL
    ).select_related("decided_by")
    return {
        str(review.call_id): {
            "state": str(review.state),
            "review": str(review.pk),
            "changes": dict(review.changes),
            "summary": review.title,
            "sentence": refusal(
                state=review.state,
                title=review.title,
                who=_name(review),
                sentence=review.sentence,
            ),
        }
        for review in reviews
    }


def _name(review: Review) -> str:
    person = review.decided_by
    return (person.get_full_name() or person.username) if person else ""


def _fence(run_id: UUID, attempt: int, cursor: Cursor[DictRow]) -> None:
    """Refuse a checkpoint of a stale attempt; a run that has just ended may write its last one.

    While a run waits, nobody works on it: what a script writes then would poison the thread.
    """
    # Nobody waits for the answer: without a row the division fails, and the transaction with it.
    cursor.execute(
        "SELECT 1 / count(*) FROM (SELECT 1 FROM runs_run"
        " WHERE id = %s AND attempt = %s AND state = ANY(%s) FOR SHARE) held",
        (run_id, attempt, [RunState.RUNNING, *RUN_FINAL]),
    )
