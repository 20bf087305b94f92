"""Every import contract is kept, and each is shown to break on a planted import.

The packages are copied to a folder of their own; one forbidden line is added there; then the real
linter runs with the real contracts.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.house.tree import PACKAGES, ROOT

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]


@dataclass(frozen=True)
class Planted:
    """One forbidden line in one file, and the contract that must notice."""

    contract: str
    file: str
    line: str


PLANTED = [
    Planted("layers", "desk/words.py", "import config.env"),
    Planted("layers", "reviews/services.py", "import payments.models"),
    Planted("layers", "reviews/tasks.py", "import agent_core.runs.services"),
    Planted("layers", "payments/tools.py", "import tickets.services"),
    Planted("layers", "tickets/services.py", "import payments.selectors"),
    Planted("layers", "knowledge/services.py", "import agent_core.runs.models"),
    Planted("layers", "agent_core/runs/services.py", "import payments.models"),
    Planted("layers", "payments/tasks.py", "import exports.services"),
    Planted("layers", "exports/views.py", "import desk.words"),
    Planted("layers", "agent_core/contract.py", "import reviews.states"),
    Planted("rings", "agent_core/router.py", "import agent_core.answer"),
    Planted("rings", "agent_core/errors.py", "import agent_core.contract"),
    Planted("rings", "agent_core/budget.py", "import agent_core.policy"),
    Planted("rings", "agent_core/toolset.py", "import agent_core.gate"),
    Planted("rings", "agent_core/checkpoints.py", "import agent_core.toolset"),
    Planted("rings", "agent_core/chat_models/offline.py", "import agent_core.toolset"),
    Planted("rings", "agent_core/gate.py", "import agent_core.graph"),
    Planted("rings", "agent_core/graph.py", "import agent_core.runs.models"),
    Planted("rings", "agent_core/middleware/__init__.py", "import agent_core.graph"),
    Planted("rings", "agent_core/graph.py", "import agent_core.harness.cases"),
    Planted("rings", "agent_core/stray.py", "import agent_core.errors"),
    Planted("in-middleware", "agent_core/middleware/parts.py", "import agent_core.middleware.gate"),
    Planted("in-middleware", "agent_core/middleware/stop.py", "import agent_core.middleware.gate"),
    Planted("in-middleware", "agent_core/middleware/stray.py", "import agent_core.errors"),
    Planted("pure-ring", "agent_core/router.py", "import langgraph"),
    Planted("pure-ring", "agent_core/answer.py", "import django.utils.translation"),
    Planted("pure-ring", "agent_core/contract.py", "import pydantic"),
    Planted("pure-ring", "agent_core/events.py", "def late() -> None:\n    import redis"),
    Planted("graph-ring", "agent_core/graph.py", "import django.conf"),
    Planted("graph-ring", "agent_core/toolset.py", "import celery"),
    Planted("graph-ring", "agent_core/gate.py", "import payments.policies"),
    Planted("graph-ring", "agent_core/stray.py", "import redis"),
    Planted("graph-ring", "agent_core/host.py", "import reviews.services"),
    Planted("core-seen", "payments/tools.py", "import agent_core.toolset"),
    Planted("core-seen", "reviews/services.py", "import agent_core.events"),
    Planted("core-seen", "tickets/services.py", "import agent_core.runs.services"),
    Planted("core-seen", "knowledge/tools.py", "import agent_core.router"),
    Planted("core-seen-above", "exports/tools.py", "import agent_core.graph"),
    Planted("core-seen-above", "desk/transcript.py", "import agent_core.router"),
    Planted("apps-without-langchain", "payments/tools.py", "import langchain_core.tools"),
    Planted("apps-without-langchain", "reviews/services.py", "import langgraph.types"),
    Planted("apps-without-langchain", "desk/transcript.py", "import langchain_core.messages"),
    Planted("config-unseen", "payments/services.py", "import config.settings.payments"),
    Planted("config-unseen", "agent_core/runs/tasks.py", "import config.celery"),
    Planted("gateways", "payments/tools.py", "import payments.gateways.base"),
    Planted("gateways", "payments/reviewing.py", "import payments.gateways.sandbox"),
    Planted("gateways", "desk/settlement.py", "import payments.gateways"),
    Planted("pure-policies", "payments/policies.py", "import payments.models"),
    Planted("pure-policies", "tickets/policies.py", "import tickets.selectors"),
    Planted("pure-policies", "knowledge/policies.py", "import knowledge.models"),
    Planted("pure-policies", "exports/policies.py", "import exports.models"),
    Planted("pure-policies", "reviews/policies.py", "import reviews.selectors"),
    Planted("pure-policies", "reviews/states.py", "import reviews.models"),
    Planted("pure-policies", "agent_core/runs/states.py", "import agent_core.runs.models"),
    Planted("in-payments", "payments/services.py", "import payments.tools"),
    Planted("in-payments", "payments/models.py", "import payments.selectors"),
    Planted("in-payments", "payments/services_refunds.py", "import payments.services_charges"),
    Planted("in-payments", "payments/stray.py", "import payments.models"),
    Planted("in-receipts", "payments/receipts/content.py", "import payments.receipts.as_pdf"),
    Planted("in-receipts", "payments/receipts/models.py", "import payments.receipts.services"),
    Planted("in-processor", "payments/processor/ours.py", "import payments.processor.comparing"),
    Planted("in-processor", "payments/processor/views.py", "import payments.processor.tasks"),
    Planted("in-processor", "payments/processor/stray.py", "import payments.models"),
    Planted("in-payments", "payments/services.py", "import payments.processor.models"),
    Planted("stripe", "payments/processor/views.py", "import stripe"),
    Planted("stripe", "config/checks.py", "import stripe"),
    Planted("sandbox", "payments/sandbox/server.py", "import payments.models"),
    Planted("sandbox", "payments/sandbox/rules.py", "import django.conf"),
    Planted("in-reviews", "reviews/services.py", "import reviews.admin"),
    Planted("in-reviews", "reviews/models.py", "import reviews.services"),
    Planted("in-reviews", "reviews/audit/services.py", "import reviews.models"),
    Planted("in-audit", "reviews/audit/services.py", "import reviews.audit.recorded"),
    Planted("in-tickets", "tickets/services.py", "import tickets.tools"),
    Planted("in-tickets", "tickets/states.py", "import tickets.models"),
    Planted("in-knowledge", "knowledge/selectors.py", "import knowledge.services"),
    Planted("in-knowledge", "knowledge/services.py", "import knowledge.tools"),
    Planted("in-exports", "exports/services_write.py", "import exports.views"),
    Planted("in-exports", "exports/formats/csv.py", "import exports.services"),
    Planted("in-runs", "agent_core/runs/services.py", "import agent_core.runs.tasks"),
    Planted("in-runs", "agent_core/runs/claims.py", "import agent_core.runs.endings"),
    Planted("in-runs", "agent_core/runs/stray.py", "import agent_core.runs.models"),
]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("layers")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package,
            folder / package,
            ignore=lambda _folder, names: [
                name for name in names if "." in name and not name.endswith(".py")
            ],
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [str(program), "--no-logo", *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def _name(contract: str) -> str:
    return next(str(item["name"]) for item in CONTRACTS if item["id"] == contract)


def test_the_code_keeps_every_contract(copied: Path) -> None:
    result = _lint(copied)
    assert result.returncode == 0, result.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in result.stdout


@pytest.mark.parametrize(
    "planted", PLANTED, ids=lambda planted: f"{planted.contract}-{planted.file}"
)
def test_a_planted_import_breaks_the_contract(copied: Path, planted: Planted) -> None:
    path = copied / planted.file
    before = path.read_text(encoding="utf-8") if path.exists() else None
    path.write_text(f"{before or ''}\n\n{planted.line}\n", encoding="utf-8")
    try:
        result = _lint(copied, "--contract", planted.contract)
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before, encoding="utf-8")
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{_name(planted.contract)} BROKEN" in result.stdout


def test_every_contract_has_a_planted_violation() -> None:
    assert {item["id"] for item in CONTRACTS} == {planted.contract for planted in PLANTED}


def test_every_app_keeps_its_inner_order_by_contract() -> None:
    ordered = {
        container
        for item in CONTRACTS
        if item["type"] == "layers" and item.get("exhaustive")
        for container in item["containers"]
    }
    apps = {"payments", "reviews", "tickets", "knowledge", "exports", "agent_core.runs"}
    assert ordered == {
        *apps,
        "reviews.audit",
        "payments.receipts",
        "payments.processor",
        "agent_core",
        "agent_core.middleware",
    }


def test_the_contracts_hold_no_list_of_excused_imports() -> None:
    """An ignored import names a whole ring; a single module excused by name would be a leak."""
    excused = [
        line
        for item in CONTRACTS
        for line in item.get("ignore_imports", [])
        if not any(part.endswith("**") for part in line.split(" -> "))
    ]
    assert excused == []
