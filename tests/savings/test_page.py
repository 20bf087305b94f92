"""docs/savings.md says what the code measures, and its figures are those of the kept run."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from tests.savings.classes import CLASSES, ONE_TOOL
from tests.savings.collection import MODELS, collection_read
from tests.savings.kept import kept_read
from tests.savings.measure import ALL, BASELINE, MODES, ONE_TOOL_ANSWERS, TARGET
from tests.savings.repeats import COLUMNS as AGAIN_COLUMNS
from tests.savings.report import AGAIN_TOLD, BEGIN, COLUMNS, END, GROUPS, PAGE, page_written

TEXT: Final = PAGE.read_text("utf-8")
MEASURED: Final = TEXT.partition(BEGIN)[2].partition(END)[0]


def cells(line: str) -> list[str]:
    """Return the cells of one line of a table."""
    return [cell.strip() for cell in line.strip("|").split("|")]


def figures() -> dict[tuple[str, str], list[str]]:
    """Return the measured table by group and mode; a group is named on its first line only."""
    found: dict[tuple[str, str], list[str]] = {}
    group = how_many = ""
    for line in re.findall(r"^\|.*\|$", MEASURED.partition(AGAIN_TOLD)[0], re.MULTILINE)[2:]:
        first, count, mode, *rest = cells(line)
        group, how_many = first or group, count or how_many
        found[group, mode] = [how_many, *rest]
    return found


def groups() -> dict[str, list[str]]:
    """Return the ids of the requests in every group of the table."""
    requests = collection_read()
    by_class = {name: [each.id for each in requests if each.kind == name] for name in CLASSES}
    return {
        ALL: [each.id for each in requests],
        ONE_TOOL_ANSWERS: [each.id for each in requests if each.kind in ONE_TOOL],
        **by_class,
    }


def test_every_request_is_in_the_kept_run_and_no_other() -> None:
    assert sorted(kept_read()) == sorted(groups()[ALL]), "`make savings UPDATE=1` keeps a new run"


def test_the_table_has_the_columns_and_lines_of_the_code() -> None:
    assert f"| {' | '.join(COLUMNS)} |" in MEASURED
    assert list(figures()) == [(group, mode) for group in GROUPS for mode in MODES]


def test_every_figure_is_the_sum_of_the_kept_run() -> None:
    kept, wrong = kept_read(), []
    for (group, mode), shown in figures().items():
        names = groups()[group]
        sums = [sum(kept[name][mode][place] for name in names) for place in range(3)]
        base = [sum(kept[name][BASELINE][place] for name in names) for place in range(3)]
        shares = [Decimal(part) / Decimal(whole) for part, whole in zip(sums, base, strict=True)]
        expected = [
            *map(str, (len(names), *sums)),
            *(str(share.quantize(Decimal("0.001"))) for share in shares[:2]),
        ]
        if [*shown[:4], *shown[5:]] != expected:
            wrong.append((group, mode, shown, expected))
    assert wrong == []


def test_the_page_names_the_models_as_simulated_and_the_verdicts() -> None:
    assert "Model: " + ", ".join(f"{name} (simulated)" for name in MODELS) in MEASURED
    total = len(groups()[ALL])
    assert f"and exports equal to {BASELINE}: {total} of {total} requests." in MEASURED
    assert f"the target of at most {TARGET} is met." in MEASURED


def test_the_page_shows_apart_what_a_model_that_repeats_has_changed() -> None:
    lines = [cells(each) for each in MEASURED.partition(AGAIN_TOLD)[2].split("\n") if each]
    shown = {line[0]: line[1:] for line in lines[2:]}
    assert lines[0] == list(AGAIN_COLUMNS)
    assert "(simulated)" in AGAIN_TOLD
    for name, (how_many, *_counts, equal) in shown.items():
        assert equal == f"{how_many} of {how_many}"
        assert how_many == str(len(groups()[name]))
    made = {name: int(line[2]) for name, line in shown.items()}
    assert made.pop(ALL) == sum(made.values()) > len(groups()[ALL]) / 2


def test_the_page_lists_the_classes_in_the_words_of_the_code() -> None:
    rows = [tuple(cells(line)) for line in TEXT.splitlines() if line.startswith("| `")]
    listed = {name.strip("`"): words for name, words in rows if name.strip("`") in CLASSES}
    assert listed == {name: kind.words for name, kind in CLASSES.items()}


def test_writing_the_page_anew_leaves_the_rest_as_it_is() -> None:
    assert page_written(TEXT, MEASURED.strip()) == TEXT
    assert page_written(TEXT, "new").replace("new", MEASURED.strip()).count(END) == 1
