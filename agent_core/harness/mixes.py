"""The mixes of one, two and three parallel probes, played and held against the oracle."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from agent_core.budget import Limits
from agent_core.chat_models.scripted import says
from agent_core.harness.cases import Case, batch
from agent_core.harness.oracle import AFTERWARDS_TEXT, MEANINGS, Expected, expected
from agent_core.harness.play import ORCHESTRATIONS, played
from agent_core.harness.transcript import Transcript

MODES: Final = ("hard", "polish", "never")

_UNFIT: Final = ("receipt!", "receipts")
# To the oracle a call that does not fit is a timeout, and a crash is a decline. Where the number of
# mixes would cost minutes one stands for both, unless every triple is wanted.
_PROBES_OF_THREES: Final = tuple(name for name in MEANINGS if name not in (*_UNFIT, "crash"))
_PROBES_OTHERWISE: Final = tuple(name for name in MEANINGS if name not in _UNFIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Probes called at once; `backwards` when the last of them finishes first."""

    tools: tuple[str, ...]
    backwards: bool = False
    mode: str = "hard"
    spent: bool = False

    @property
    def name(self) -> str:
        """Say in one line what is played."""
        notes = [
            "last to first" if self.backwards else "",
            self.mode if self.mode != "hard" else "",
            "limit used up" if self.spent else "",
        ]
        noted = ", ".join(note for note in notes if note)
        return " + ".join(self.tools) + (f" ({noted})" if noted else "")

    @property
    def finishing(self) -> tuple[str, ...]:
        """Return the things in the order in which their calls finish."""
        run = (at for at, tool in enumerate(self.tools, 1) if MEANINGS[tool].executed)
        things = tuple(f"T-{at}" for at in run)
        return things[::-1] if self.backwards else things

    def case(self) -> Case:
        """Return it as a case: the batch, and one more answer in case the model is asked again."""
        return Case(
            name=self.name,
            steps=(batch(*self.tools), says(AFTERWARDS_TEXT)),
            stop_mode=self.mode,
            limits=Limits(model_calls=1) if self.spent else Limits(),
            finishing=self.finishing,
        )


def mixes(*, every_triple: bool = False) -> list[Mix]:
    """Return the mixes to play.

    In mode hard: each probe, pair and triple in every order of calling, the calls finishing first
    to last and last to first. The triples leave out the probes that mean to the table what another
    means, unless `every_triple` is wanted. In the other stop modes and with a limit used up: each
    probe and each pair of those that fit, called and finishing in one order.
    """
    return [*_hard(every_triple=every_triple), *_otherwise()]


def _hard(*, every_triple: bool) -> Iterator[Mix]:
    of_threes = tuple(MEANINGS) if every_triple else _PROBES_OF_THREES
    for size, probes in ((1, tuple(MEANINGS)), (2, tuple(MEANINGS)), (3, of_threes)):
        for tools in itertools.product(probes, repeat=size):
            yield Mix(tools=tools)
            if size > 1:
                yield Mix(tools=tools, backwards=True)


def _otherwise() -> Iterator[Mix]:
    for size in (1, 2):
        for tools in itertools.combinations_with_replacement(_PROBES_OTHERWISE, size):
            for mode, spent in itertools.product(MODES, (False, True)):
                if (mode, spent) != ("hard", False):
                    yield Mix(tools=tools, mode=mode, spent=spent)


def mix_problems(mix: Mix, on: Sequence[str] = tuple(ORCHESTRATIONS)) -> list[str]:
    """Play one mix on these orchestrations; return what is not as the table says."""
    wanted = expected(mix.tools, mode=mix.mode, spent=mix.spent)
    return [
        f"{mix.name}, {name}: {problem}"
        for name in on
        for problem in _problems(mix, wanted, played(mix.case(), ORCHESTRATIONS[name]))
    ]


def _problems(mix: Mix, wanted: Expected, got: Transcript) -> Iterator[str]:
    for what, right, is_now in (
        ("decisions", [wanted.decision], list(got.decisions)),
        ("rule", wanted.rule, got.rule),
        ("model calls", wanted.model_calls, got.model_calls),
        ("replies to each call", [1] * len(mix.tools), list(got.replies)),
        ("replies", _replies(mix.tools), [call.partition(":")[0] for call in got.calls]),
        ("probes that ran, as they finished", _ran(mix), list(got.ran)),
        ("text", *_texts(wanted, got)),
    ):
        if right != is_now:
            yield f"{what}: {is_now!r}; the table says {right!r}"


def _replies(tools: Sequence[str]) -> list[str]:
    reasons = [MEANINGS[tool].reason or "unclear" for tool in tools]
    return [f"{tool.rstrip('*!')} -> {why}" for tool, why in zip(tools, reasons, strict=True)]


def _ran(mix: Mix) -> list[str]:
    """Each probe once and none again, in the order that was forced."""
    tool_of = {f"T-{at}": tool.rstrip("*!") for at, tool in enumerate(mix.tools, 1)}
    return [f"{tool_of[thing]} {thing}" for thing in mix.finishing]


def _texts(wanted: Expected, got: Transcript) -> tuple[str, str]:
    """Return both texts; of a headline only how it begins is the table's to say."""
    text = got.told
    if wanted.headline and text.startswith(wanted.headline):
        text = text.partition("\n\n")[2]
    return wanted.text, text


def all_problems(
    which: Sequence[Mix], jobs: int | None = None, on: Sequence[str] = tuple(ORCHESTRATIONS)
) -> list[str]:
    """Play these mixes, in as many processes as there are cores; return all that is wrong."""
    jobs = jobs or min(4, os.cpu_count() or 1)
    if jobs == 1:
        return [problem for mix in which for problem in mix_problems(mix, on)]
    # Fresh processes: a fork of one that has threads may hang.
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=fresh, initializer=_quiet) as pool:
        try:
            with _uninterrupted():
                found = pool.map(partial(mix_problems, on=on), which, chunksize=20)
            return [problem for problems in found for problem in problems]
        except KeyboardInterrupt:
            # Else the pool plays all that waits before it ends.
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Start processes that leave an interrupt from the terminal to their parent.

    It reaches every process there. A mask is handed on to a new one, from its first moment.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _quiet() -> None:
    """Probes break on purpose; their tracebacks would drown what is wrong."""
    logging.disable(logging.CRITICAL)
