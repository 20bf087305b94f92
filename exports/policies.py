"""Say whether an export may start: the right decides, and no second person is needed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from agent_core.policy import Policy, Proposal, Verdict

EXPORT_RIGHT: Final = "exports.add_export"


def right_missing(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    """Block whoever may not export at all."""
    if EXPORT_RIGHT in proposal.rights:
        return None
    return Verdict(
        kind="block",
        rule="right.missing",
        text=_("Your role may not export. Nothing was exported."),
        data={"right": EXPORT_RIGHT},
    )


def own_rows(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    """Allow the rest: an export shows only what its owner may look up anyway."""
    return Verdict(kind="allow", rule="export.own_rows")


POLICIES: Final[tuple[Policy, ...]] = (right_missing, own_rows)
