"""The collection as data: large enough, of every class, and refused in a sentence when garbled."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.savings.classes import CLASSES
from tests.savings.collection import CollectionInvalid, collection_read, request_read

GOOD: dict[str, Any] = {"id": "one", "asks": "agent", "says": "charge INV-1001", "class": "receipt"}
APPROVED = {"who": "lead", "does": "approve"}


def test_it_holds_eighty_requests_and_twenty_with_several_writes() -> None:
    requests = collection_read()
    assert len(requests) >= 80
    assert sum(request.writes > 1 for request in requests) >= 20


def test_it_holds_every_class_and_one_of_each_in_the_short_form() -> None:
    requests = collection_read()
    assert set(Counter(request.kind for request in requests)) == set(CLASSES)
    assert {request.kind for request in requests if request.short} == set(CLASSES)


def test_the_whole_collection_is_asked_of_both_offline_models() -> None:
    models = Counter(request.model for request in collection_read())
    assert min(models.values()) >= 20


def test_a_line_added_to_any_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(GOOD) + "\n\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({**GOOD, "id": "two"}))
    assert [request.id for request in collection_read(tmp_path)] == ["one", "two"]


def test_a_refusal_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join([json.dumps(GOOD), "{"]))
    with pytest.raises(CollectionInvalid, match=r"^a\.jsonl, line 2: this is not one JSON object"):
        collection_read(tmp_path)


def test_an_id_that_stands_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(GOOD))
    (tmp_path / "b.jsonl").write_text(json.dumps(GOOD))
    with pytest.raises(CollectionInvalid, match=r'^b\.jsonl, line 1: the id "one" stands twice\.$'):
        collection_read(tmp_path)


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({**GOOD, "class": "odd"}, '"class" is "odd", which is none of receipt, ticket, '),
        ({**GOOD, "asks": "nobody"}, '"asks" is "nobody", which is none of agent, lead, '),
        ({**GOOD, "model": "gpt"}, '"model" is "gpt", which is none of offline:planner@0, '),
        ({**GOOD, "says": " "}, '"says" is empty.'),
        ({**GOOD, "says": 5}, '"says" must be a text.'),
        ({**GOOD, "writes": True}, '"writes" must be a whole number.'),
        ({**GOOD, "writes": -1}, '"writes" must not be negative.'),
        ({**GOOD, "says_": "x"}, '"says_" is unknown; there are id, asks, says, class, '),
        ({"id": "one"}, '"asks" is missing.'),
        ({**GOOD, "decisions": ["yes"]}, "decision 1: it must be an object of texts."),
        ({**GOOD, "decisions": [APPROVED, {"who": "lead"}]}, 'decision 2: "does" is missing.'),
        (
            {**GOOD, "decisions": [{"who": "lead", "does": "nod"}]},
            'decision 1: "does" is "nod", which is none of approve, reject, withdraw.',
        ),
        (
            {**GOOD, "decisions": [{**APPROVED, "sentence": "No."}]},
            'decision 1: "sentence" does not belong to "approve".',
        ),
        (
            {**GOOD, "decisions": [{"who": "lead", "does": "reject"}]},
            'decision 1: a rejection needs a "sentence".',
        ),
        ([GOOD], "this is not one JSON object on one line."),
    ],
)
def test_a_garbled_line_is_refused_in_one_sentence(entry: object, sentence: str) -> None:
    with pytest.raises(CollectionInvalid) as refused:
        request_read(json.dumps(entry))
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)
