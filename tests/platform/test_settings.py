"""The settings as a deployment and a reader of the README meet them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.checks import run_checks
from django.test import override_settings

from config.checks import TAG
from config.home import BASE_DIR

PRODUCTION = {
    "DJANGO_SETTINGS_MODULE": "config.settings.production",
    "SECRET_KEY": "k3" * 30 + "-only-for-this-check",
    "AUDIT_KEY": "a5" * 20,
    "ALLOWED_HOSTS": "desk.example",
    "DATABASE_URL": "postgresql://desk@db.example/desk",
    "REDIS_URL": "redis://redis.example/0",
    "SANDBOX_URL": "http://processor.example",
    "CHAT_MODEL": "groq:some-model",
    "GROQ_API_KEY": "a-key",
}
LOAD = "import config.settings.production"


def _python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "COUNTERSIGN_HOME": os.environ["COUNTERSIGN_HOME"]}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=BASE_DIR,
        env={**env, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def _documented() -> dict[str, str]:
    text = (BASE_DIR / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (`[^`]*`|none) \| \S.* \|$", text, re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a variable stands in the table twice"
    return {name: "" if default == "none" else default.strip("`") for name, default in rows}


def _read_by_the_code() -> dict[str, str]:
    script = """
import json
from config import env
from config.launcher.preflight import wishes
import config.settings.demo
wishes()
variables = {v.name: v.default for v in env.VARIABLES.values()}
import config.settings.production
for v in env.VARIABLES.values():
    variables.setdefault(v.name, v.default)
print(json.dumps(variables))
"""
    done = _python("-c", script, **PRODUCTION)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_the_readme_lists_every_variable_with_its_default() -> None:
    assert _documented() == _read_by_the_code()


def test_settings_read_the_environment_through_the_strict_readers_only() -> None:
    files = sorted((BASE_DIR / "config" / "settings").glob("*.py"))
    assert files
    assert [file.name for file in files if "os.environ" in file.read_text("utf-8")] == []


def test_production_passes_the_deployment_check() -> None:
    done = _python("manage.py", "check", "--deploy", "--fail-level", "WARNING", **PRODUCTION)
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize(
    "name", ["SECRET_KEY", "AUDIT_KEY", "ALLOWED_HOSTS", "DATABASE_URL", "REDIS_URL", "SANDBOX_URL"]
)
def test_production_names_what_is_missing(name: str) -> None:
    done = _python("-c", LOAD, **{**PRODUCTION, name: ""})
    assert done.returncode == 1
    assert f"{name} must be set" in done.stderr.splitlines()[-1]


def test_production_refuses_the_demo() -> None:
    done = _python("manage.py", "check", **PRODUCTION, DEMO="1")
    assert done.returncode == 1
    assert done.stderr.startswith("DEMO is refused by the production settings")


def test_production_refuses_to_measure_every_run() -> None:
    done = _python("manage.py", "check", **PRODUCTION, STOP_MODE="never")
    assert done.returncode == 1
    assert done.stderr.startswith("STOP_MODE=never is refused by the production settings")
    for mode in ("hard", "polish"):
        assert _python("-c", LOAD, **PRODUCTION, STOP_MODE=mode).returncode == 0


def test_production_refuses_the_offline_model_unless_it_is_allowed() -> None:
    variables = {**PRODUCTION, "CHAT_MODEL": ""}
    done = _python("-c", LOAD, **variables)
    assert done.returncode == 1
    assert "CHAT_MODEL is the offline model" in done.stderr
    assert _python("-c", LOAD, **variables, ALLOW_OFFLINE_MODEL="1").returncode == 0


def test_production_keeps_files_in_a_bucket_when_one_is_named() -> None:
    script = (
        "import django; django.setup(); from django.core.files.storage import default_storage as s;"
        "print(type(s._wrapped or s).__name__ if s.bucket_name == 'desk' else 'other')"
    )
    done = _python("-c", script, **PRODUCTION, STORAGE_BUCKET="desk")
    assert done.stdout.strip() == "S3Storage", done.stderr


@pytest.mark.parametrize(
    ("changes", "identifier"),
    [
        ({"CHAT_MODEL": "offline"}, "countersign.E002"),
        ({"CHAT_MODEL": ":planner"}, "countersign.E002"),
        ({"CHAT_MODEL": "groq:"}, "countersign.E002"),
        ({"CHAT_MODEL": "groq:x", "GROQ_API_KEY": ""}, "countersign.E003"),
        ({"RUN_SCOPE": "payments.selectors.no_such"}, "countersign.E001"),
        ({"RUN_SCOPE": "payments.no_such.scope_of"}, "countersign.E001"),
        ({"TOOLSETS": ["no_such_app.tools.TOOLS"]}, "countersign.E001"),
        ({"MODEL_TIMEOUT_SECONDS": 301}, "countersign.W001"),
    ],
    ids=str,
)
def test_a_setting_that_cannot_work_is_found_under_a_stable_id(
    changes: dict[str, object], identifier: str
) -> None:
    with override_settings(**changes):
        assert [message.id for message in run_checks(tags=[TAG])] == [identifier]


def test_the_settings_of_the_suite_have_no_finding() -> None:
    assert run_checks(tags=[TAG]) == []


def test_a_deployment_with_demo_accounts_is_found() -> None:
    with override_settings(DEMO=True):
        found = run_checks(tags=[TAG], include_deployment_checks=True)
    assert "countersign.E004" in [message.id for message in found]


def test_the_demo_key_is_made_once_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from config.secret import secret_key

    monkeypatch.setenv("COUNTERSIGN_HOME", str(tmp_path / "home"))
    first = secret_key()
    assert len(first) > 50
    assert secret_key() == first
    assert (tmp_path / "home" / "secret-key").stat().st_mode & 0o777 == 0o600
