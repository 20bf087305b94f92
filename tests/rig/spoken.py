"""A Python module run as a process that answers each line of JSON with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from config.home import BASE_DIR


class Spoken:
    """Such a process, started; what it says beside its answers goes to `log`, if one is named."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        variables: Mapping[str, str],
        log: Path | None = None,
    ) -> None:
        self.log = log
        self._module = module
        with (log or Path(os.devnull)).open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=BASE_DIR,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output if log else None,
                text=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._process.kill()
        self.close()

    def ask(self, order: Any) -> Any:
        """Send an order and return what answers it.

        Raises:
            ChildProcessError: the process ended instead.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self.heard()

    def heard(self) -> Any:
        """Return what it says next.

        Raises:
            ChildProcessError: the process ended instead.
        """
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self.log.read_text("utf-8", errors="replace")[-3000:] if self.log else ""
            raise ChildProcessError(f"{self._module} ended with {self._process.wait()}:\n{said}")
        return json.loads(line)

    def close(self) -> None:
        """End what it hears, and so the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()
