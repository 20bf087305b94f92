"""Style, types, templates and migrations: what `make lint` checks is part of the tests as well."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from django.core.management import call_command

ROOT: Final = Path(__file__).parents[2]
BIN: Final = Path(sys.executable).parent


def ran(*command: str) -> tuple[int, str]:
    """Run a tool in the project and return its exit code and what it said."""
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_style_checker_finds_nothing() -> None:
    assert ran("ruff", "check", "--no-cache", ".") == (0, "All checks passed!\n")


def test_every_file_is_formatted() -> None:
    code, said = ran("ruff", "format", "--check", "--no-cache", ".")
    assert code == 0, said


@pytest.mark.timeout(600)
def test_the_type_checker_finds_nothing() -> None:
    code, said = ran("mypy", ".")
    assert code == 0, said


def test_every_template_is_formatted() -> None:
    folders = [ROOT / "templates", *ROOT.glob("*/templates")]
    templates = [str(path) for folder in folders for path in folder.rglob("*.html")]
    assert templates
    code, said = ran("djade", "--check", "--target-version", "5.2", *templates)
    assert code == 0, said


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
