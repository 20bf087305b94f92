"""Run the sandbox processor until it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path

from payments.sandbox.books import Books
from payments.sandbox.events import hook_set
from payments.sandbox.server import Sandbox


def main(arguments: list[str] | None = None) -> int:
    """Serve on the given port, say where once the line is open, and end on a signal."""
    parser = argparse.ArgumentParser(prog="python -m payments.sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--store", type=Path, required=True, help="the file of the books")
    parser.add_argument("--ready-file", type=Path, help="gets the address once it answers")
    parser.add_argument("--hold", type=float, default=30.0, help="seconds a slow line is held")
    parser.add_argument("--control", action="store_true", help="tests only: faults and books")
    parser.add_argument("--hook", default="", help="the address that events are sent to")
    options = parser.parse_args(arguments)
    secret = os.environ.get("STRIPE_WEBHOOK_SECRET", "").partition(",")[0].strip()
    if options.hook and not secret:
        print("--hook needs a secret to sign with, in STRIPE_WEBHOOK_SECRET.", file=sys.stderr)
        return 1
    try:
        books = Books(options.store)
        with books.transaction() as db:
            hook_set(db, options.hook, secret)
        server = Sandbox(
            options.host,
            options.port,
            books,
            hold=options.hold,
            control=options.control,
        )
    except OSError as error:
        print(
            f"The sandbox processor cannot use port {options.port}: {error.strerror}.",
            file=sys.stderr,
        )
        return 1
    _end_on_signals(server)
    host, port = server.server_address[:2]
    if options.ready_file:
        _tell(options.ready_file, f"http://{host!s}:{port}")
    server.serve_forever(poll_interval=0.1)
    server.deliveries.end()
    server.server_close()
    return 0


def _tell(path: Path, address: str) -> None:
    # Whoever waits for the file must never read half of it.
    half = path.with_name(path.name + ".part")
    half.write_text(address, encoding="utf-8")
    half.replace(path)


def _end_on_signals(server: Sandbox) -> None:
    # shutdown() waits for the loop that this very thread runs, hence another thread.
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: threading.Thread(target=server.shutdown).start())


if __name__ == "__main__":
    sys.exit(main())
