"""The documentation says what the code says: stop reasons, codes, the map, field reports."""

import ast
import re
from importlib import import_module

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import get_commands
from django.utils import translation

from agent_core.answer import LIMIT_WORDS
from agent_core.budget import Limits
from agent_core.router import BATCH_RULES, END_RULES, STOP_RULES
from agent_core.runs.asking import EXIT_CODES, WAITING_EXIT
from agent_core.runs.wording import CAUSES, LIMITS, RULES
from payments import sentences
from reviews.states import FINAL as REVIEW_FINAL
from reviews.states import State as ReviewState
from tests.house.codes import Found, codes_found, sentence_codes
from tests.house.pages import column, page, table
from tests.house.tree import PACKAGES, ROOT, named, product_modules

STOP_PAGE = "docs/stop-reasons.md"
CODES_PAGE = "docs/codes.md"
MAP_PAGE = "docs/map.md"
REPORTS_PAGE = "docs/field-reports.md"

REPORTS = (  # noqa: SIM905
    "B01 B02 B03 B05 B06 B07 B10 B11 B12 B15 B19 B20 B21 B22 B25 B26 B27 "
    "B30 B31 B32 B33 B34 B40 B41 B51 B52 B53 B54 B57 B58 B60"
).split()


def test_a_table_is_read_by_its_heading_and_a_missing_one_is_an_error() -> None:
    text = "# A\n\n## B\n\n| x | y |\n| --- | --- |\n| `1` | two |\n\n## C\n\nno table\n"
    assert table(text, "B") == [["1", "two"]]
    for heading in ("C", "D"):
        with pytest.raises(LookupError):
            table(text, heading)


# Stop reasons


def test_the_routers_rules_stand_in_the_page_in_their_order() -> None:
    rows = table(page(STOP_PAGE), "Rules of the router")
    assert [row[0] for row in rows] == list(BATCH_RULES)
    assert [row[0] for row in rows if row[2] == "stop"] == [
        rule for rule in BATCH_RULES if rule in STOP_RULES
    ]


def test_every_end_stands_in_the_page_with_the_words_staff_read() -> None:
    with translation.override("en"):
        expected = [
            [rule, str(CAUSES[rule]), str(RULES[rule]), str(EXIT_CODES[rule])] for rule in CAUSES
        ]
    assert table(page(STOP_PAGE), "Ends") == expected
    assert set(CAUSES) == set(RULES) == set(EXIT_CODES) == {*STOP_RULES, *END_RULES}


def test_every_limit_stands_in_the_page() -> None:
    defaults = Limits()
    with translation.override("en"):
        expected = [[name, str(getattr(defaults, name)), str(LIMITS[name])] for name in LIMITS]
    assert table(page(STOP_PAGE), "Limits of a run") == expected
    assert set(LIMITS) == set(LIMIT_WORDS) == set(Limits.__dataclass_fields__)


# Codes


def _product_codes() -> Found:
    """The harness's own probe tools are no part of the product."""
    paths = [path for path in product_modules() if "agent_core/harness/" not in named(path)]
    found = codes_found(path.read_text(encoding="utf-8") for path in paths)
    for code, reasons in sentence_codes(sentences._SENTENCES).items():
        found.outcomes.setdefault(code, set()).update(reasons)
    for state in REVIEW_FINAL - {ReviewState.APPROVED}:
        found.outcomes[f"review.{state}"] = {"policy_block"}
    return found


def test_every_outcome_code_stands_in_the_page_with_its_reasons() -> None:
    rows = table(page(CODES_PAGE), "Outcomes")
    told = {row[0]: set(row[1].split(", ")) for row in rows}
    assert len(told) == len(rows)
    assert told == _product_codes().outcomes


def test_what_the_page_says_of_stopping_fits_the_reason() -> None:
    for code, reason, stops, _when in table(page(CODES_PAGE), "Outcomes"):
        if reason != "completed":
            assert stops == ("no" if reason == "transient" else "yes"), code


def test_every_rule_of_a_verdict_stands_in_the_page() -> None:
    told = {row[0]: {row[1]} for row in table(page(CODES_PAGE), "Rules of verdicts")}
    assert told == _product_codes().rules


def test_every_error_code_stands_in_the_page() -> None:
    assert set(column(page(CODES_PAGE), "Errors")) == _product_codes().errors


def test_codes_are_found_wherever_they_are_written() -> None:
    found = codes_found(
        [
            "def f():\n    return 'x', completed('a.one', stop=True)\n",
            "x = 'y', policy_block('a.two', data={})\n",
            "v = Verdict(kind='block', rule='a.three')\nw = Verdict(kind='allow', rule='a.four')\n",
            "class E(Exception):\n    code: ClassVar[str] = 'a.five'\n",
            "class E(Exception):\n    code = 'a.six'\n",
        ]
    )
    assert found.outcomes == {
        "a.one": {"completed"},
        "a.two": {"policy_block"},
        "a.three": {"policy_block"},
    }
    assert found.rules == {"a.three": {"block"}, "a.four": {"allow"}}
    assert found.errors == {"a.five", "a.six"}


# The map and the command line


def test_the_map_lists_every_task_with_its_queue_and_its_beat() -> None:
    for name in settings.INSTALLED_APPS:
        if name.split(".")[0] in PACKAGES and (ROOT / name.replace(".", "/") / "tasks.py").exists():
            import_module(f"{name}.tasks")
    from config.celery import app

    beat = {
        str(entry["task"]): float(str(entry["schedule"]))
        for entry in settings.CELERY_BEAT_SCHEDULE.values()
    }
    expected = {
        name: (
            settings.CELERY_TASK_ROUTES.get(name, {}).get("queue", "maintenance"),
            f"{beat[name]:g} s" if name in beat else "",
        )
        for name in app.tasks
        if not name.startswith("celery.")
    }
    told = {row[0]: (row[1], row[2]) for row in table(page(MAP_PAGE), "Tasks")}
    assert told == expected


def test_the_map_lists_every_queue() -> None:
    told = column(page(MAP_PAGE), "Queues")
    assert sorted(told) == sorted(queue.name for queue in settings.CELERY_TASK_QUEUES)


def test_the_map_lists_every_table_of_ours() -> None:
    expected = {
        model._meta.db_table
        for model in apps.get_models(include_auto_created=True)
        if model.__module__.split(".")[0] in PACKAGES
    }
    assert set(column(page(MAP_PAGE), "Tables")) == expected


def test_the_map_lists_every_tool_with_its_right() -> None:
    expected = {}
    for path in settings.TOOLSETS:
        module, _dot, attribute = path.rpartition(".")
        for tool in getattr(import_module(module), attribute):
            expected[tool.name] = (f"{module.replace('.', '/')}.py", tool.right)
    told = {row[0]: (row[1], row[2]) for row in table(page(MAP_PAGE), "Tools")}
    assert told == expected


def test_the_command_line_page_lists_our_commands_and_exit_codes() -> None:
    text = page("docs/command-line.md")
    ours = {name for name, app in get_commands().items() if str(app).split(".")[0] in PACKAGES}
    assert set(column(text, "Commands")) == ours
    told = {}
    for code, rules in table(text, "Exit codes"):
        for rule in rules.split(" or "):
            told[rule] = int(code)
    assert {rule: told[rule] for rule in EXIT_CODES} == dict(EXIT_CODES)
    assert told["waits for a reviewer"] == WAITING_EXIT


PATHS = re.compile(
    r"`((?:agent_core|config|desk|exports|knowledge|payments|reviews|tickets|tests|docs|static"
    r"|templates)/[\w./-]*\w/?)`"
)


def missing_paths(text: str) -> list[str]:
    """Find files and folders that a page names and the tree does not have."""
    return [name for name in PATHS.findall(text) if not (ROOT / name).exists()]


@pytest.mark.parametrize(
    "name", ["README.md", "CONTRIBUTING.md", *(p.name for p in (ROOT / "docs").rglob("*.md"))]
)
def test_every_file_that_a_page_names_exists(name: str) -> None:
    (path,) = [ROOT / name] if (ROOT / name).exists() else list((ROOT / "docs").rglob(name))
    assert missing_paths(path.read_text(encoding="utf-8")) == []


def test_a_file_that_does_not_exist_is_noticed() -> None:
    assert missing_paths("see `payments/tools.py` and `payments/gone.py`") == ["payments/gone.py"]


LINKS = re.compile(r"\]\(((?!https?:|#|mailto:)[^)#]+)")


def test_every_link_between_pages_leads_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{named(path)}: {target}"
        for path in pages
        for target in LINKS.findall(path.read_text(encoding="utf-8"))
        if not (path.parent / target).exists()
    ]
    assert broken == []


# Field reports


def names_of_tests(path: str) -> set[str]:
    """Return the names of the test functions of a file, methods included."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {
        item.name
        for item in ast.walk(tree)
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
        and item.name.startswith("test_")
    }


def missing_tests(rows: list[list[str]]) -> list[str]:
    """Find tests that the page names and that are not there."""
    missing = []
    for report, _what, held in rows:
        for test in held.split("<br>"):
            path, _colons, name = test.strip().partition("::")
            if not (ROOT / path).is_file() or name not in names_of_tests(path):
                missing.append(f"{report}: {test.strip()}")
    return missing


def test_every_field_report_is_held_by_tests_that_exist() -> None:
    rows = table(page(REPORTS_PAGE), "Held")
    assert [row[0] for row in rows] == REPORTS
    assert missing_tests(rows) == []


def test_a_test_that_does_not_exist_is_noticed() -> None:
    rows = [
        ["B05", "", "tests/core/test_router.py::test_each_batch_has_its_rule"],
        ["B06", "", "tests/core/test_router.py::test_gone<br>tests/core/gone.py::test_gone"],
    ]
    assert missing_tests(rows) == [
        "B06: tests/core/test_router.py::test_gone",
        "B06: tests/core/gone.py::test_gone",
    ]


def test_decisions_are_numbered_without_gaps_and_have_their_three_parts() -> None:
    paths = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert [path.name[:4] for path in paths] == [f"{n:04}" for n in range(1, len(paths) + 1)]
    for path in paths:
        heads = re.findall(r"(?m)^## (.+)$", path.read_text(encoding="utf-8"))
        assert heads == ["Context", "Decision", "Rejected"], path.name
