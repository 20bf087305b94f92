"""Names that are stored, sent or routed by are data: they are pinned in `persisted_names.json`.

A name that goes or changes needs a migration of what is stored; a new one needs a line there.
"""

import json
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import Permission
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.constants import START

from agent_core import contract, events, polish, router
from agent_core.graph import graph_compile
from agent_core.graph_state import State as GraphState
from agent_core.runs import states as runs
from exports import states as exports
from exports.formats import FORMATS
from exports.kinds import KINDS
from knowledge import states as knowledge
from payments import states as payments
from payments.processor import states as processor
from payments.roles import ROLES
from reviews import states as reviews
from tests.house.test_documents import _product_codes
from tests.house.tree import PACKAGES
from tickets import states as tickets

PINNED = json.loads(Path(__file__).with_name("persisted_names.json").read_text(encoding="utf-8"))


def names_now() -> dict[str, Any]:
    """Return every persisted name as the code has it."""
    return {**_core(), **_states(), **_work(), **_stored()}


def _core() -> dict[str, Any]:
    codes = _product_codes()
    return {
        "reasons": list(contract.REASONS),
        "artifact fields": sorted(contract.Artifact.__annotations__),
        "batch rules": list(router.BATCH_RULES),
        "stop rules": sorted({*router.STOP_RULES, *router.END_RULES}),
        "stop modes": list(router.STOP_MODES),
        "polish notes": list(polish.NOTES),
        "events": {kind: sorted(fields) for kind, fields in sorted(events.EVENT_FIELDS.items())},
        "outcome codes": sorted(codes.outcomes),
        "verdict rules": sorted(codes.rules),
        "error codes": sorted(codes.errors),
    }


def _states() -> dict[str, Any]:
    return {
        "run states": list(runs.RunState.values),
        "call states": list(runs.CallState.values),
        "message roles": list(runs.Role.values),
        "review states": list(reviews.State.values),
        "review decisions": list(reviews.Decision.values),
        "review channels": list(reviews.Channel.values),
        "review risks": list(reviews.Risk.values),
        "operations": list(payments.Operation.values),
        "invoice states": list(payments.InvoiceState.values),
        "payment states": list(payments.PaymentState.values),
        "refund states": list(payments.RefundState.values),
        "refund origins": list(payments.RefundOrigin.values),
        "dispute states": list(payments.DisputeState.values),
        "intent states": list(payments.IntentState.values),
        "ways to pay": list(payments.MethodKind.values),
        "ticket states": list(tickets.State.values),
        "ticket priorities": list(tickets.Priority.values),
        "article states": list(knowledge.State.values),
        "export states": list(exports.ExportState.values),
        "reconciliation results": list(processor.Result.values),
        "differences of the books": list(processor.Difference.values),
    }


def _work() -> dict[str, Any]:
    from config.celery import app

    app.loader.import_default_modules()
    return {
        "tasks": sorted(name for name in app.tasks if not name.startswith("celery.")),
        "queues": sorted(queue.name for queue in settings.CELERY_TASK_QUEUES),
        "beat entries": sorted(settings.CELERY_BEAT_SCHEDULE),
        "tools": sorted(_tools()),
        "review kinds": sorted(settings.REVIEW_SUBJECTS),
        "gateways": sorted(settings.PAYMENT_GATEWAYS),
        "export formats": sorted(FORMATS),
        "export kinds": sorted(KINDS),
        # A paused thread names the node in which it waits: renamed, it would never go on.
        "graph nodes": sorted({*graph_compile(InMemorySaver()).nodes} - {START}),
        "graph state": sorted(GraphState.__annotations__),
    }


def _tools() -> Iterable[str]:
    for path in settings.TOOLSETS:
        module, _dot, attribute = path.rpartition(".")
        yield from (tool.name for tool in getattr(import_module(module), attribute))


def _stored() -> dict[str, Any]:
    ours = [m for m in apps.get_models() if m.__module__.split(".")[0] in PACKAGES]
    return {
        "tables": sorted(model._meta.db_table for model in ours),
        "roles": list(ROLES),
        "rights of ours": sorted(
            f"{model._meta.app_label}.{name}"
            for model in ours
            for name, _words in model._meta.permissions
        ),
    }


def differences(pinned: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Say what went, what came and what moved, by kind of name."""
    found = [f"{kind}: not pinned" for kind in now.keys() - pinned.keys()]
    for kind, names in pinned.items():
        new = now.get(kind)
        if new == names:
            continue
        gone = [name for name in names if name not in (new or ())]
        came = [name for name in new or () if name not in names]
        found.append(f"{kind}: gone {gone}, new {came}" if gone or came else f"{kind}: moved")
    return found


def test_no_persisted_name_moves() -> None:
    assert differences(PINNED, names_now()) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"tasks": ["a"]}, ["tasks: gone ['b'], new []"]),
        ({"tasks": ["a", "b", "c"]}, ["tasks: gone [], new ['c']"]),
        ({"tasks": ["b", "a"]}, ["tasks: moved"]),
        ({"tasks": ["a", "b"], "queues": []}, ["queues: not pinned"]),
        ({}, ["tasks: gone ['a', 'b'], new []"]),
    ],
)
def test_a_name_that_moves_is_noticed(now: dict[str, Any], said: list[str]) -> None:
    assert differences({"tasks": ["a", "b"]}, now) == said


@pytest.mark.django_db
def test_the_rights_that_roles_are_given_exist() -> None:
    """A right that no app defines would leave a role without it, silently."""
    there = {
        f"{right.content_type.app_label}.{right.codename}"
        for right in Permission.objects.select_related("content_type")
    }
    assert {name for names in ROLES.values() for name in names} - there == set()
