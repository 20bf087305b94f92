"""The collection under `never` with a model that repeats what it has done.

The offline models never call again what is finished, so that equal effects under `never` say little
of the no-repeat rule. The model here does so in every turn with an effect; nothing may come of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall
from typing_extensions import override

from agent_core.chat_models import chat_model
from agent_core.chat_models.offline import OfflineModel, _Answer
from agent_core.runs import work
from tests.savings.classes import CLASSES
from tests.savings.effects import differences
from tests.savings.measure import ALL, BASELINE, Trio
from tests.savings.play import Played, Stage, play

AGAINST: Final = "hard"


class RepeatingModel(OfflineModel):
    """An offline model that calls its last batch with effects once more before it answers."""

    effects: frozenset[str]

    @override
    def _answer(self, messages: list[BaseMessage], options: dict[str, Any]) -> _Answer:
        answer = super()._answer(messages, options)
        again = () if answer.calls else tuple(self._again(messages))
        return replace(answer, text="", calls=again) if again else answer

    def _again(self, messages: Sequence[BaseMessage]) -> list[ToolCall]:
        said = max(at for at, each in enumerate(messages) if isinstance(each, HumanMessage))
        batches = [
            each.tool_calls
            for each in messages[said:]
            if isinstance(each, AIMessage) and self.effects & {c["name"] for c in each.tool_calls}
        ]
        made = [_wanted(batch) for batch in batches]
        if not made or made.count(made[-1]) > 1:
            return []
        return [
            ToolCall(name=name, args=args, id=f"again_{len(messages)}_{at}", type="tool_call")
            for at, (name, args) in enumerate(made[-1])
        ]


def _wanted(batch: Sequence[ToolCall]) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in batch]


def repeating(named: str, **_options: object) -> RepeatingModel:
    """Return the offline model of this name, made to repeat."""
    model = chat_model(named, timeout=5)
    if not isinstance(model, OfflineModel):
        raise TypeError(f"{named} is no offline model.")
    effects = frozenset(tool.name for tool in work.toolset() if tool.effect)
    return RepeatingModel(style=model.style, delay=model.delay, effects=effects)


@dataclass(frozen=True, slots=True)
class Again:
    """One request in mode hard, and under `never` with a model as it is and with one that repeats.

    All three start from the same state.
    """

    hard: Played
    never: Played
    repeated: Played

    @property
    def calls(self) -> int:
        """Count the calls with an effect that were made again."""
        return sum(step.effect for step in self.repeated.course.steps()) - sum(
            step.effect for step in self.never.course.steps()
        )

    @property
    def kept_off(self) -> int:
        """Count those among them that got the first outcome, so that they did nothing."""
        return sum(step.repeat for step in self.repeated.course.steps()) - sum(
            step.repeat for step in self.never.course.steps()
        )

    def differing(self) -> list[str]:
        """Say what the repeats have changed otherwise than mode hard."""
        return differences(self.hard.effects, self.repeated.effects)


def again_measure(trios: Iterable[Trio], stage: Stage) -> list[Again]:
    """Play every request once more under `never`, with the model that repeats."""
    with patch.object(work, "chat_model", repeating):
        return [
            Again(trio[AGAINST], trio[BASELINE], play(trio[BASELINE].request, BASELINE, stage))
            for trio in trios
        ]


def again_missed(found: Sequence[Again]) -> list[str]:
    """Say which requests the repeats have changed, or left without an end."""
    told = []
    for each in found:
        name = each.hard.request.id
        told += [f"{name} has changed something else when repeated: {w}" for w in each.differing()]
        if each.repeated.state != "done":
            told.append(f"{name} did not end when repeated: it is {each.repeated.state}.")
    return told


COLUMNS: Final = (
    "requests",
    "how many",
    "with a repeat",
    "calls made again",
    "given the first outcome",
    f"effects equal to {AGAINST}",
)


def again_table(found: Sequence[Again]) -> str:
    """Return a line for all and for each class in which anything was repeated."""
    groups = {ALL: list(found)} | {
        name: [each for each in found if each.hard.request.kind == name] for name in CLASSES
    }
    lines = [COLUMNS, tuple("---" for _each in COLUMNS)]
    lines += [_line(name, group) for name, group in groups.items() if any(a.calls for a in group)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(name: str, group: Sequence[Again]) -> tuple[str, ...]:
    equal = sum(1 for each in group if not each.differing())
    return (
        name,
        str(len(group)),
        str(sum(1 for each in group if each.calls)),
        str(sum(each.calls for each in group)),
        str(sum(each.kept_off for each in group)),
        f"{equal} of {len(group)}",
    )
