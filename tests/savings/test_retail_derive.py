"""The retail part of the collection is what the mapping makes of the data set, to the byte."""

from __future__ import annotations

import pytest

from payments.samples.retail import retail_read
from tests.payments.retail import FOLDER, needs_data
from tests.savings.collection import collection_read
from tests.savings.report import PAGE
from tests.savings.retail_derive import DATABASE, REQUESTS, derived, left_out, read


@needs_data
def test_the_mapping_makes_the_same_files_anew() -> None:
    requests, database = derived(*read(FOLDER))
    assert REQUESTS.read_text("utf-8") == requests
    assert DATABASE.read_text("utf-8") == database


@needs_data
def test_every_task_is_a_request_or_left_out_for_a_reason_that_the_page_tells() -> None:
    _data, tasks = read(FOLDER)
    mapped = {request.id for request in collection_read() if request.source}
    out = left_out(tasks)
    assert len(mapped) + sum(map(len, out.values())) == len(tasks)
    page = " ".join(PAGE.read_text("utf-8").split())
    assert f"{len(mapped)} of the {len(tasks)} tasks" in page
    for why, ids in out.items():
        assert f"{why}, {len(ids)}: {', '.join(ids)}" in page


def test_the_part_that_is_kept_can_be_imported_and_holds_no_addresses() -> None:
    retail = retail_read(DATABASE.parent)
    assert (len(retail.people), len(retail.orders)) == (24, 54)
    assert "address1" not in DATABASE.read_text("utf-8")


@pytest.mark.parametrize("name", ["LICENSE", "db.json"])
def test_the_license_stands_beside_the_data(name: str) -> None:
    assert (DATABASE.parent / name).is_file()
    assert "Sierra Research" in (DATABASE.parent / "LICENSE").read_text("utf-8")
