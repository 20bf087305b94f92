"""The files that the house rules look at."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "agent_core",
    "config",
    "desk",
    "exports",
    "knowledge",
    "payments",
    "reviews",
    "tickets",
)
_LEFT_OUT = {".git", ".venv", "var", "__pycache__", "node_modules"}


def product_modules() -> Iterator[Path]:
    """Yield the product's modules; migrations are written by a program."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


def modules() -> Iterator[Path]:
    """Yield the product's modules and the tests'."""
    yield from product_modules()
    yield from sorted((ROOT / "tests").rglob("*.py"))


def templates() -> Iterator[Path]:
    """Yield every template of the product."""
    yield from sorted((ROOT / "templates").rglob("*.html"))
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("templates/**/*.html"))


def tracked() -> Iterator[Path]:
    """Yield the files of the repository; without Git, everything that is no product of a run."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"],  # noqa: S607 - Git from the PATH, as everywhere
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        listed = ""
    if listed:
        names = [ROOT / name for name in listed.split("\0") if name]
    else:
        names = [p for p in ROOT.rglob("*") if not _LEFT_OUT & set(p.relative_to(ROOT).parts)]
    yield from (path for path in sorted(names) if path.is_file())


def named(path: Path) -> str:
    """Return a path as the repository writes it."""
    return path.relative_to(ROOT).as_posix()
