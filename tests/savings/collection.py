"""The collection: one request a line in `requests/*.jsonl`. Read and checked; a new line is run.

| field | holds |
| --- | --- |
| `id` | its name, once in the whole collection |
| `asks` | the demo account that writes |
| `says` | the one message |
| `class` | how it ends: one of `CLASSES` |
| `writes` | how many effects the message orders |
| `decisions` | what reviewers do, in the order in which they are asked; none when left out |
| `model` | the offline model that answers when no provider is configured; a planner when left out |
| `short` | whether it belongs to the short form; it does not when left out |
| `source` | where it was taken from; ours when left out |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from payments.samples.cast import ACCOUNTS
from tests.savings.classes import CLASSES

FOLDER: Final = Path(__file__).with_name("requests")
MODELS: Final = ("offline:planner@0", "offline:one-at-a-time@0")

_NEEDED: Final[Mapping[str, type]] = {"id": str, "asks": str, "says": str, "class": str}
_OPTIONAL: Final[Mapping[str, type]] = {
    "writes": int,
    "decisions": list,
    "model": str,
    "short": bool,
    "source": str,
}
_FIELDS: Final = {**_NEEDED, **_OPTIONAL}
_KINDS: Final = {str: "a text", int: "a whole number", list: "a list", bool: "true or false"}
_DECISION: Final = {"approve": {"amount"}, "reject": {"sentence"}, "withdraw": set()}


class CollectionInvalid(ValueError):
    """A line of the collection cannot be run; the sentence names file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What one person does about one review."""

    who: str
    does: str
    amount: str = ""
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One message of one staff member, and what reviewers decide on the way."""

    id: str
    asks: str
    says: str
    kind: str
    writes: int = 0
    decisions: tuple[Decision, ...] = ()
    model: str = MODELS[0]
    short: bool = False
    source: str = ""


def collection_read(folder: Path = FOLDER) -> list[Request]:
    """Return all requests, file by file, line by line.

    Raises:
        CollectionInvalid: a line is no request, or an id stands twice.
    """
    requests: dict[str, Request] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if not line.strip():
                continue
            try:
                request = request_read(line)
                if request.id in requests:
                    raise CollectionInvalid(f'the id "{request.id}" stands twice.')
            except CollectionInvalid as error:
                raise CollectionInvalid(f"{path.name}, line {number}: {error}") from None
            requests[request.id] = request
    return list(requests.values())


def request_read(line: str) -> Request:
    """Return the request that a line holds.

    Raises:
        CollectionInvalid: one sentence says what is wrong with it.
    """
    try:
        entry = json.loads(line)
    except ValueError:
        raise CollectionInvalid("this is not one JSON object on one line.") from None
    if not isinstance(entry, dict):
        raise CollectionInvalid("this is not one JSON object on one line.")
    for complaint in _complaints(entry):
        raise CollectionInvalid(complaint)
    decisions = tuple(Decision(**each) for each in entry.pop("decisions", []))
    return Request(kind=entry.pop("class"), decisions=decisions, **entry)


def _complaints(entry: Mapping[str, Any]) -> Iterator[str]:
    """Say what is wrong, the first first; a later check leans on the ones before."""
    yield from (f'"{name}" is missing.' for name in _NEEDED if name not in entry)
    yield from (
        f'"{name}" is unknown; there are {", ".join(_FIELDS)}.'
        for name in entry
        if name not in _FIELDS
    )
    yield from (
        f'"{name}" must be {_KINDS[kind]}.'
        for name, kind in _FIELDS.items()
        if name in entry and type(entry[name]) is not kind
    )
    yield from (f'"{name}" is empty.' for name in _NEEDED if not entry[name].strip())
    yield from _unlisted("class", entry["class"], CLASSES)
    yield from _unlisted("asks", entry["asks"], _accounts())
    yield from _unlisted("model", entry.get("model", MODELS[0]), MODELS)
    if entry.get("writes", 0) < 0:
        yield '"writes" must not be negative.'
    for place, decision in enumerate(entry.get("decisions", []), 1):
        yield from (f"decision {place}: {each}" for each in _decision_complaints(decision))


def _decision_complaints(decision: object) -> Iterator[str]:
    if not isinstance(decision, dict) or not all(type(each) is str for each in decision.values()):
        yield "it must be an object of texts."
        return
    yield from (f'"{name}" is missing.' for name in ("who", "does") if name not in decision)
    yield from _unlisted("who", decision["who"], _accounts())
    yield from _unlisted("does", decision["does"], _DECISION)
    known = {"who", "does"} | _DECISION[decision["does"]]
    yield from (
        f'"{name}" does not belong to "{decision["does"]}".'
        for name in decision
        if name not in known
    )
    if decision["does"] == "reject" and not decision.get("sentence", "").strip():
        yield 'a rejection needs a "sentence".'


def _unlisted(name: str, value: str, listed: Iterator[str] | Any) -> Iterator[str]:
    known = tuple(listed)
    if value not in known:
        yield f'"{name}" is "{value}", which is none of {", ".join(known)}.'


def _accounts() -> tuple[str, ...]:
    return tuple(account.username for account in ACCOUNTS)
