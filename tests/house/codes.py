"""Find in the code every outcome code, rule of a verdict and error code, without running it."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from payments.gateways.classes import reason_of

REASONS = ("completed", "transient", "fatal", "policy_block")


@dataclass
class Found:
    """Codes by what they are; outcomes with the reasons they are returned with."""

    outcomes: dict[str, set[str]] = field(default_factory=dict)
    rules: dict[str, set[str]] = field(default_factory=dict)
    errors: set[str] = field(default_factory=set)


def codes_found(sources: Iterable[str]) -> Found:
    """Read modules and collect their codes."""
    found = Found()
    for source in sources:
        for item in ast.walk(ast.parse(source)):
            if isinstance(item, ast.Call):
                _call(item, found)
            elif isinstance(item, ast.ClassDef):
                found.errors |= set(_class_codes(item))
    for rule, kinds in found.rules.items():
        # A rule that blocks becomes the code of the outcome.
        if "block" in kinds:
            found.outcomes.setdefault(rule, set()).add("policy_block")
    return found


def sentence_codes(sentences: Iterable[str]) -> dict[str, set[str]]:
    """Return the ledger's codes with the reason each is told as."""
    reasons = {"completed": "completed", "accepted": "completed", "being_checked": "transient"}
    return {
        code: {reasons.get(word) or reason_of(word)}
        for code, word in ((code, code.partition(".")[2]) for code in sentences)
        # The tool tells this one as `payment.disputed`, a policy block.
        if code != "refund.disputed"
    }


def _call(item: ast.Call, found: Found) -> None:
    name = item.func.id if isinstance(item.func, ast.Name) else ""
    if name in REASONS and item.args and _text(item.args[0]):
        found.outcomes.setdefault(_text(item.args[0]), set()).add(name)
    words = {word.arg: _text(word.value) for word in item.keywords if word.arg}
    if name == "Verdict" and words.get("rule"):
        found.rules.setdefault(words["rule"], set()).add(words.get("kind", ""))


def _class_codes(item: ast.ClassDef) -> Iterator[str]:
    for line in item.body:
        target = line.targets[0] if isinstance(line, ast.Assign) else None
        if isinstance(line, ast.AnnAssign):
            target = line.target
        if isinstance(target, ast.Name) and target.id == "code":
            value = _text(line.value) if isinstance(line, ast.Assign | ast.AnnAssign) else ""
            if value:
                yield value


def _text(item: ast.expr | None) -> str:
    return item.value if isinstance(item, ast.Constant) and isinstance(item.value, str) else ""
