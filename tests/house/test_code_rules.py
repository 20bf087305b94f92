"""Every house rule holds in the tree, and every rule catches what it is for."""

import ast
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.house import rules
from tests.house.tree import ROOT, modules, named, product_modules

LONG_FUNCTION = "def f() -> None:\n" + "    x = 1\n" * 40
TYPED = "def f(a: int) -> int:\n    return a\n"

CAUGHT: list[tuple[rules.Rule, str]] = [
    (rules.module_too_long, "x = 1\n" * 401),
    (rules.function_too_long, LONG_FUNCTION),
    (rules.function_too_long, "class A:\n" + textwrap.indent(LONG_FUNCTION, "    ")),
    (rules.module_without_docstring, "x = 1\n"),
    (rules.public_without_docstring, "def shown() -> None:\n    pass\n"),
    (rules.public_without_docstring, "async def shown() -> None:\n    pass\n"),
    (rules.public_without_docstring, "class Shown:\n    pass\n"),
    (rules.untyped, "def f(a) -> int:\n    return 1\n"),
    (rules.untyped, "def f(a: int):\n    return a\n"),
    (rules.untyped, "def f(*, b=1) -> int:\n    return b\n"),
    (rules.untyped, "def f(**more) -> int:\n    return 1\n"),
    (rules.return_direct, "Tool(name='x', return_direct=True)\n"),
    (rules.return_direct, "tool.return_direct = True\n"),
    (rules.return_direct, "options = {'return_direct': True}\n"),
    (rules.marked_safe, "mark_safe(text)\n"),
    (rules.marked_safe, "safestring.mark_safe(text)\n"),
    (rules.float_money, "amount = float(text)\n"),
    (rules.float_money, "amount = 19.99\n"),
    (rules.float_money, "left = amount_minor / 100\n"),
    (rules.float_money, "minor = round(amount)\n"),
    (rules.broad_except, "try:\n    f()\nexcept Exception:\n    pass\n"),
    (rules.broad_except, "try:\n    f()\nexcept (ValueError, Exception):\n    pass\n"),
    (rules.broad_except, "try:\n    f()\nexcept:\n    pass\n"),
    (rules.broad_except, "try:\n    f()\nexcept BaseException:  # noqa: BLE001\n    pass\n"),
    (rules.bare_ignore, "x = f()  # type: ignore\n"),
    (rules.bare_ignore, "x = f()  # noqa\n"),
    (rules.signal_receiver, "from django.db.models.signals import post_save\n"),
    (rules.signal_receiver, "from django.dispatch import receiver\n"),
    (rules.touches_rows, "from django.db import transaction\n"),
    (rules.touches_rows, "from django.db.models import Q, TextChoices\n"),
    (rules.touches_rows, "import django.db\n"),
    (rules.touches_rows, "left = Payment.objects.count()\n"),
    (rules.enqueued_before_commit, "work.delay(run_id)\n"),
    (rules.enqueued_before_commit, "work.apply_async(args=[run_id])\n"),
    (rules.task_unnamed, "@shared_task\ndef work() -> None:\n    pass\n"),
    (rules.task_unnamed, "@shared_task(ignore_result=True)\ndef work() -> None:\n    pass\n"),
]

PASSED: list[tuple[rules.Rule, str]] = [
    (rules.signal_receiver, "from django.contrib.auth.signals import user_login_failed\n"),
    (rules.module_too_long, "x = 1\n" * 400),
    (rules.function_too_long, "def f() -> None:\n" + "    x = 1\n" * 39),
    (rules.module_without_docstring, '"""What this is."""\nx = 1\n'),
    (rules.module_without_docstring, ""),
    (rules.public_without_docstring, "def _own() -> None:\n    pass\n"),
    (rules.untyped, TYPED),
    (rules.untyped, "class A:\n    def f(self, *more: int) -> int:\n        return 1\n"),
    (
        rules.return_direct,
        "if tool.return_direct:\n    raise ContractBroken('return_direct is no')\n",
    ),
    (rules.marked_safe, "format_html('{}', text)\n"),
    (rules.float_money, "PAUSE_SECONDS = 0.05\n"),
    (rules.float_money, "path = folder / 'db.json'\n"),
    (rules.float_money, "isinstance(amount, float)\n"),
    (rules.broad_except, "try:\n    f()\nexcept Exception:  # The boundary of x.\n    pass\n"),
    (rules.broad_except, "try:\n    f()\nexcept ValueError:\n    pass\n"),
    (rules.bare_ignore, "x = 'type: ignore'  # type: ignore[arg-type]  # noqa: S105\n"),
    (rules.touches_rows, "from django.db.models import TextChoices\n"),
    (rules.enqueued_before_commit, "transaction.on_commit(partial(send, run_id))\n"),
    (rules.task_unnamed, "@shared_task(name='runs.run_work')\ndef work() -> None:\n    pass\n"),
]


def _name(value: object) -> str:
    return value.__name__ if callable(value) and hasattr(value, "__name__") else ""


@pytest.mark.parametrize(("rule", "source"), CAUGHT, ids=_name)
def test_a_rule_catches_what_it_is_for(rule: rules.Rule, source: str) -> None:
    assert rule(source)


@pytest.mark.parametrize(("rule", "source"), PASSED, ids=_name)
def test_a_rule_lets_good_code_pass(rule: rules.Rule, source: str) -> None:
    assert rule(source) == []


def test_every_rule_is_shown_to_catch_and_is_used() -> None:
    public = {
        value
        for name, value in vars(rules).items()
        if callable(value) and getattr(value, "__module__", "") == rules.__name__
        if not name.startswith("_")
    }
    assert public == {rule for rule, _source in CAUGHT} == {*EVERYWHERE, *IN_THE_PRODUCT, *NARROW}


EVERYWHERE = (rules.module_too_long, rules.bare_ignore)
# A table of cases may make a test long; it is read from top to bottom all the same.
IN_THE_PRODUCT = (
    rules.function_too_long,
    rules.module_without_docstring,
    rules.public_without_docstring,
    rules.untyped,
    rules.return_direct,
    rules.marked_safe,
    rules.broad_except,
    rules.signal_receiver,
    rules.enqueued_before_commit,
    rules.task_unnamed,
)
NARROW = (rules.float_money, rules.touches_rows)


def _broken(rule: rules.Rule, paths: Iterable[Path]) -> list[str]:
    return [
        f"{named(path)}: {problem}"
        for path in paths
        for problem in rule(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("rule", EVERYWHERE, ids=_name)
def test_the_rule_holds_in_product_and_tests(rule: rules.Rule) -> None:
    assert _broken(rule, modules()) == []


@pytest.mark.parametrize("rule", IN_THE_PRODUCT, ids=_name)
def test_the_rule_holds_in_the_product(rule: rules.Rule) -> None:
    assert _broken(rule, product_modules()) == []


def test_no_float_stands_near_money() -> None:
    """The sandbox's server and the pacing of retries work with seconds; they name them so."""
    money = [p for p in product_modules() if named(p).startswith(("payments/", "exports/"))]
    assert len(money) > 40
    assert _broken(rules.float_money, money) == []


PURE_NAMES = ("policies.py", "states.py")


def test_policies_and_states_touch_no_rows() -> None:
    pure = [path for path in product_modules() if path.name in PURE_NAMES]
    assert len(pure) >= 10
    assert _broken(rules.touches_rows, pure) == []


def refused_names(paths: Iterable[Path]) -> list[str]:
    """Find modules and folders whose name says nothing about what they hold."""
    return [named(path) for path in paths if {path.stem, *_folders(path)} & rules.REFUSED_MODULES]


def _folders(path: Path) -> set[str]:
    return set(path.relative_to(ROOT).parts[:-1])


def test_no_module_is_called_utils_helpers_common_or_manager() -> None:
    assert refused_names(modules()) == []
    for name in ("utils", "helpers", "common", "manager"):
        assert refused_names([ROOT / "payments" / f"{name}.py"]) == [f"payments/{name}.py"]
        assert refused_names([ROOT / "payments" / name / "money.py"])


PURE_RING = (
    "answer",
    "router",
    "budget",
    "policy",
    "events",
    "contract",
    "errors",
    "redaction",
)


def outside_standard_library(source: str) -> list[str]:
    """Find imports of anything but the standard library and the pure ring itself."""
    ring = {f"agent_core.{name}" for name in PURE_RING}
    found = []
    for item in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(item, ast.Import):
            names = [alias.name for alias in item.names]
        elif isinstance(item, ast.ImportFrom):
            names = [item.module or ""]
        found += [
            name
            for name in names
            if name.split(".")[0] not in sys.stdlib_module_names and name not in ring
        ]
    return found


def test_the_pure_ring_needs_the_standard_library_only() -> None:
    check: Callable[[str], list[str]] = outside_standard_library
    for name in PURE_RING:
        path = ROOT / "agent_core" / f"{name}.py"
        assert check(path.read_text(encoding="utf-8")) == [], name
    assert check("import attrs\n") == ["attrs"]
    assert check("from agent_core.toolset import Toolset\n") == ["agent_core.toolset"]
    assert check("def f() -> None:\n    import langgraph.types\n") == ["langgraph.types"]
