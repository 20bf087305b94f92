"""The product's roles and their rights; `roles_setup` makes them in each place of deployment.

Rights of other apps stand here as text: a role is what a person may do, wherever it is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from django.contrib.auth.models import Group, Permission
from django.db import transaction

from agent_core.errors import CountersignError
from reviews.audit.services import Subject, audit_write, task
from reviews.audit.words import Action

AGENTS: Final = "Support agents"
LEADS: Final = "Team leads"
ADMINISTRATORS: Final = "Administrators"
TRAINEES: Final = "Trainees"
AUDITORS: Final = "Auditors"

_LOOKS: Final = ("payments.view_customer", "knowledge.view_article")
_ASKS: Final = (
    *_LOOKS,
    "payments.request_charge",
    "payments.request_refund",
    "tickets.add_ticket",
    "exports.add_export",
)
_DECIDES: Final = (
    *_ASKS,
    "reviews.view_review",
    "reviews.decide_review",
    "runs.view_all_runs",
    # Why a bank declined a card stands with what was wanted of it, and in no text.
    "payments.view_intent",
    "payments.view_decline_code",
)
_SEES_RECORDS: Final = (
    *(
        f"payments.view_{name}"
        for name in ("team", "paymentmethod", "invoice", "payment", "refund", "intent", "pause")
    ),
    "receipts.view_document",
    "processor.view_processorevent",
    "processor.view_reconciliation",
)
ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    AGENTS: _ASKS,
    LEADS: _DECIDES,
    ADMINISTRATORS: (
        *_DECIDES,
        *_SEES_RECORDS,
        "tickets.view_ticket",
        "runs.measure_runs",
        "runs.operate",
        "payments.pause_refunds",
    ),
    TRAINEES: (*_LOOKS, "reviews.view_review"),
    # Sees all teams wherever these are shown in the administration, and changes nothing.
    AUDITORS: (
        *_LOOKS,
        *_SEES_RECORDS,
        "audit.view_entry",
        "auth.view_group",
        "auth.view_user",
        "exports.view_export",
        "reviews.view_review",
        "runs.view_conversation",
        "runs.view_run",
        "runs.view_call",
        "runs.view_modelcall",
        "runs.view_stoprecord",
        "tickets.view_ticket",
        "tickets.view_note",
    ),
}
"""Rights by role."""


class RightsMissing(CountersignError):
    """A role names rights that are not in this database."""

    code: ClassVar[str] = "roles.rights_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSet:
    """What came of one role: its rights, those given now, and those somebody added by hand."""

    name: str
    rights: int
    given: int
    added_by_hand: int


def roles_setup() -> Sequence[RoleSet]:
    """Make each role and give it the rights it lacks; what was added by hand stays.

    Raises:
        RightsMissing: a right is not there, so that no role was touched.
    """
    installed = _rights_installed()
    missing = sorted({name for names in ROLES.values() for name in names} - installed.keys())
    if missing:
        raise RightsMissing(f"These rights are not installed: {', '.join(missing)}.")
    with transaction.atomic():
        return [
            _role_set(role, {installed[name].pk for name in names}) for role, names in ROLES.items()
        ]


def _rights_installed() -> dict[str, Permission]:
    codenames = {name.partition(".")[2] for names in ROLES.values() for name in names}
    rights = Permission.objects.select_related("content_type").filter(codename__in=codenames)
    return {f"{right.content_type.app_label}.{right.codename}": right for right in rights}


def _role_set(role: str, wanted: set[int]) -> RoleSet:
    group, _made = Group.objects.get_or_create(name=role)
    had = set(group.permissions.values_list("pk", flat=True))
    group.permissions.add(*(wanted - had))
    if wanted - had:
        given = Permission.objects.filter(pk__in=wanted - had).order_by("codename")
        audit_write(
            Action.ROLE_GIVEN,
            actor=task("roles_setup"),
            subject=Subject("auth.group", group.pk, role),
            after={"given": list(given.values_list("codename", flat=True))},
        )
    return RoleSet(
        name=role,
        rights=len(wanted),
        given=len(wanted - had),
        added_by_hand=len(had - wanted),
    )
