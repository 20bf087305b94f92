"""Verdicts: the first policy that speaks is heard, and silence means a person decides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_core.policy import Policy, Proposal, Verdict, allow, verdict_of

PROPOSAL = Proposal(tool="probe", arguments={}, rights=frozenset(), customer_id=None)


def _says(kind: str, rule: str) -> Policy:
    def policy(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
        return Verdict(kind=kind, rule=rule)  # type: ignore[arg-type]

    return policy


def _silent(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    return None


def test_the_first_verdict_wins() -> None:
    policies = [_silent, _says("block", "first"), _says("allow", "second")]
    assert verdict_of(policies, PROPOSAL, {}).rule == "first"


def test_no_policy_and_only_silent_ones_mean_a_review() -> None:
    for policies in ([], [_silent, _silent]):
        verdict = verdict_of(policies, PROPOSAL, {})
        assert (verdict.kind, verdict.rule) == ("review", "unlisted")
        assert verdict.text == "No rule covers this, so a person decides."


def test_reading_is_allowed() -> None:
    assert allow(PROPOSAL, {}) == Verdict(kind="allow", rule="read")


def test_a_policy_reads_the_proposal_and_the_facts() -> None:
    def above(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
        if facts["wanted"] > facts["left"]:
            return Verdict(kind="block", rule=f"{proposal.tool}.above")
        return None

    assert verdict_of([above, allow], PROPOSAL, {"wanted": 2, "left": 1}).rule == "probe.above"
    assert verdict_of([above, allow], PROPOSAL, {"wanted": 1, "left": 1}).rule == "read"
