"""Holds the running children: starts them, starts one anew when it dies, ends all in order."""

import re
import time
from collections import deque
from pathlib import Path

from config import runtime
from config.children import Child, NotReady, Spec
from config.launcher.interrupt import Interrupt
from config.launcher.problems import CannotStart

# More deaths than this within the window end the product: something is wrong for good.
MAX_DEATHS = 5
WINDOW_SECONDS = 120.0
LONGEST_PAUSE = 16.0


def say(line: str) -> None:
    """Print one line of the launcher's own."""
    print(f"[countersign] {line}", flush=True)


class Supervisor:
    """The children in the order in which they were started."""

    def __init__(self, folder: Path, interrupt: Interrupt) -> None:
        self.folder = folder
        self.interrupt = interrupt
        self.addresses = runtime.Runtime()
        self._children: list[Child] = []
        self._deaths: dict[str, deque[float]] = {}
        self._due: dict[str, float] = {}

    def log(self, name: str) -> Path:
        """Return where the output of a child goes."""
        return self.folder / "log" / f"{name}.log"

    def launch(self, spec: Spec) -> Child:
        """Start a child without waiting for it, and record it before anything can go wrong."""
        self.interrupt.check()
        child = Child(spec, self.log(spec.name))
        self._children.append(child)
        child.start()
        self.record()
        return child

    def wait(self, child: Child, seconds: float) -> None:
        """Wait until a child answers.

        Raises: CannotStart when it does not; Stopped when a stop was asked for.
        """
        try:
            child.wait_ready(seconds, self.interrupt.check)
        except NotReady as problem:
            raise CannotStart(f"{problem}; see {child.log}.") from None

    def once(self, spec: Spec) -> None:
        """Run a child to its end.

        Raises: CannotStart when it fails; Stopped when a stop was asked for.
        """
        child = self.launch(spec)
        code = child.wait_end(self.interrupt.check)
        self._children.remove(child)
        self.record()
        if code:
            raise CannotStart(f"`{spec.name}` failed{_last_words(child.log)}; see {child.log}.")

    def record(self) -> None:
        """Write the addresses and the living processes down for commands and the next start."""
        alive = [c.record for c in self._children if c.record and c.exit_code() is None]
        runtime.write(
            runtime.Runtime(
                web_url=self.addresses.web_url,
                database_url=self.addresses.database_url,
                redis_url=self.addresses.redis_url,
                sandbox_url=self.addresses.sandbox_url,
                processes=[record for record in alive if record],
            ),
            self.folder,
        )

    def watch(self) -> None:
        """Look after the children until a stop is asked for.

        Raises: Stopped when a stop was asked for; CannotStart when a child dies again and again.
        """
        while True:
            self.interrupt.check()
            for child in self._children:
                self._tend(child)
            time.sleep(0.2)

    def _tend(self, child: Child) -> None:
        name, code = child.spec.name, child.exit_code()
        if code is None:
            return
        now = time.monotonic()
        if name in self._due:
            if now >= self._due[name]:
                del self._due[name]
                child.clear()
                child.start()
                self.record()
                say(f"{name}: started again")
            return
        deaths = self._deaths.setdefault(name, deque(maxlen=MAX_DEATHS))
        if len(deaths) == MAX_DEATHS and now - deaths[0] < WINDOW_SECONDS:
            raise CannotStart(f"{name} dies again and again; see {child.log}.")
        deaths.append(now)
        recent = sum(1 for moment in deaths if now - moment < WINDOW_SECONDS)
        pause = min(2.0 ** (recent - 1), LONGEST_PAUSE)
        self._due[name] = now + pause
        say(f"{name}: ended unasked ({_cause(code)}), starting again in {pause:.0f} s")

    def stop(self) -> None:
        """End the children, last started first, and remove the runtime file."""
        while self._children:
            child = self._children[-1]
            # Workers end side by side: each hands its runs back for itself.
            kind = child.spec.name.partition("-")[0]
            for other in self._children:
                if other.spec.name.partition("-")[0] == kind:
                    other.ask_end()
            if child.exit_code() is None:
                say(f"{child.spec.name}: ending")
            child.stop(self.interrupt.hasty)
            self._children.pop()
        runtime.remove(self.folder)


def _cause(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_words(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines()
    # A system check puts its id before the sentence.
    last = re.sub(r"^\?: \([\w.]+\) ", "", lines[-1].strip()) if lines else ""
    return f" ({last[:200].rstrip('.')})" if last else ""
