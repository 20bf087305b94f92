"""The answer on a stop: the tools' own text in a fixed order, and what was done and not done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_core.contract import outcome_read

STUB: Final = "(The outcome above was shown to the staff member as it stands.)"

LIMIT_WORDS: Final[Mapping[str, str]] = {
    "model_calls": "the limit for model calls was reached (used {used}, allowed {allowed})",
    "tool_calls": "the limit for steps was reached (used {used}, allowed {allowed})",
    "tokens": "the limit for tokens was reached (used {used}, allowed {allowed})",
    "seconds": "the limit for working time was reached (used {used}, allowed {allowed} seconds)",
    "tries": "the same step did not succeed (tries used {used}, allowed {allowed})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the staff member reads, and the two lists of the stop record."""

    text: str
    headline: str
    done: tuple[str, ...]
    not_done: tuple[str, ...]


def answer_compose(
    calls: Sequence[Mapping[str, Any]], *, rule: str, evidence: Mapping[str, Any]
) -> Answer:
    """Compose the answer from every call of the run, in call order.

    Each call has `content`, `artifact`, `effect`, `label` and `identity`. Look-ups are left out,
    and of several tries of one thing the last one speaks; what was done is always told.
    """
    told = _last_tries([call for call in calls if _is_told(call)])
    groups: dict[str, list[Mapping[str, Any]]] = {"refused": [], "done": [], "open": []}
    for call in told:
        groups[_group(call)].append(call)
    ordered = [*groups["refused"], *groups["done"], *groups["open"]]
    headline = _budget_sentence(evidence) if rule == "budget" else _headline(groups)
    parts = [headline] if headline else []
    parts += _unique([str(call["content"]).strip() for call in ordered])
    return Answer(
        text="\n\n".join(part for part in parts if part),
        headline=headline,
        done=tuple(_unique([_summary(call) for call in groups["done"]])),
        not_done=tuple(
            _unique(
                [
                    *(_summary(call) for call in groups["refused"]),
                    *(_open_summary(call) for call in groups["open"]),
                ]
            )
        ),
    )


def _is_told(call: Mapping[str, Any]) -> bool:
    outcome = outcome_read(call["artifact"])
    if outcome is None:
        return bool(call["effect"])
    return bool(call["effect"]) or outcome.stop


def _group(call: Mapping[str, Any]) -> str:
    outcome = outcome_read(call["artifact"])
    if outcome is None or outcome.reason == "transient":
        return "open"
    return "done" if outcome.reason == "completed" else "refused"


def _last_tries(calls: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Leave out a try that a later one has overtaken, but never a receipt for a later refusal."""
    last = {call["identity"]: call for call in calls if call["identity"]}
    done = {call["identity"]: call for call in calls if _group(call) == "done"}
    told = {id(call) for call in (*last.values(), *done.values())}
    return [call for call in calls if not call["identity"] or id(call) in told]


def _headline(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Name both sides when only a part was done."""
    done, refused, still = (len(groups[name]) for name in ("done", "refused", "open"))
    total = done + refused + still
    if total < 2 or done == total:
        return ""
    sides = [f"{done} of {total} done"]
    if done:
        sides[0] += ": " + ", ".join(_short(call) for call in groups["done"])
    if refused:
        sides.append(f"{refused} not: " + ", ".join(_short(call) for call in groups["refused"]))
    if still:
        sides.append(f"{still} open: " + ", ".join(_short(call) for call in groups["open"]))
    return "; ".join(sides) + "."


def _budget_sentence(evidence: Mapping[str, Any]) -> str:
    words = LIMIT_WORDS.get(str(evidence.get("limit")), "a limit was reached")
    return f"I stopped here because {words.format(**evidence)}."


def _short(call: Mapping[str, Any]) -> str:
    outcome = outcome_read(call["artifact"])
    summary = str(outcome.data.get("summary", "")) if outcome else ""
    return summary or str(call["label"]).lower()


def _summary(call: Mapping[str, Any]) -> str:
    short = _short(call)
    return short[:1].upper() + short[1:]


def _open_summary(call: Mapping[str, Any]) -> str:
    """Say of what is still open whether its outcome is unknown: then it may have happened."""
    outcome = outcome_read(call["artifact"])
    if outcome is None:
        return f"{_summary(call)} (outcome unknown)"
    checked = bool(outcome.data.get("unknown"))
    return f"{_summary(call)} (outcome unknown, being checked)" if checked else _summary(call)


def _unique(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(text for text in texts if text))
