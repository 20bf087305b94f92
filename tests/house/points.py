"""The fault points of the product, read from its text: their names, and what should have one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.house.tree import named, product_modules

MARKS: Final = {"faults.commit", "faults.around"}
SIDES: Final = ("before", "after")
OUTSIDE: Final = {"gateway.send", "gateway.find"}
SENDS: Final = {"task_send", "send_task", "apply_async", "delay"}


@dataclass(frozen=True, slots=True)
class Mark:
    """One marked place; `points` are the names that it may reach."""

    name: str
    where: str
    points: tuple[str, ...]


def marks() -> list[Mark]:
    """Return every marked place of the product, in the order of the files."""
    return [
        mark
        for path in product_modules()
        if named(path) != "agent_core/faults.py"
        for mark in marks_in(path.read_text("utf-8"), named(path))
    ]


def points() -> list[str]:
    """Return the name of every fault point of the product, sorted."""
    return sorted(point for mark in marks() for point in mark.points)


def marks_in(source: str, where: str) -> Iterator[Mark]:
    """Yield the marked places of one module, also those whose name goes through a method of it.

    Raises: ValueError when a name is not written out, so that nobody could list it.
    """
    tree = ast.parse(source)
    through = set()
    for call in _calls(tree):
        what = ast.unparse(call.func)
        if what not in MARKS | {"faults.point"}:
            continue
        if (name := _text(call)) is not None:
            sides = [name] if what == "faults.point" else [f"{name}:{side}" for side in SIDES]
            yield Mark(name, f"{where}:{call.lineno}", tuple(sides))
        elif (method := _taking(tree, call)) is not None:
            through.add(method)
        else:
            raise ValueError(f"{where}:{call.lineno}: the name of a fault point is not written out")
    for call in _calls(tree):
        if ast.unparse(call.func).rpartition(".")[2] in through:
            name = _text(call)
            if name is None:
                raise ValueError(f"{where}:{call.lineno}: the name of a fault point is missing")
            yield Mark(name, f"{where}:{call.lineno}", tuple(f"{name}:{side}" for side in SIDES))


def unmarked(source: str, *, but: Collection[str] = ()) -> list[str]:
    """Find transactions, gateway calls and task sends that no fault point stands around.

    `but` names functions that are left out.
    """
    return [f"{line}: {what}" for line, what in _unmarked(ast.parse(source), but, inside=False)]


def installs(source: str) -> list[str]:
    """Find where an action is given to the fault points: only tests may."""
    return [
        f"{call.lineno}: {ast.unparse(call.func)}"
        for call in _calls(ast.parse(source))
        if ast.unparse(call.func) in {"faults.install", "install"}
    ]


def _unmarked(node: ast.AST, but: Collection[str], *, inside: bool) -> Iterator[tuple[int, str]]:
    """Walk down; `inside` says that a marked or an outer transaction stands around the node."""
    if isinstance(node, ast.With | ast.AsyncWith):
        found = [item.context_expr for item in node.items]
        held = any(_is_mark(each) or _is_transaction(each) for each in found)
        if not inside:
            yield from ((each.lineno, ast.unparse(each)) for each in found if _is_transaction(each))
        yield from _below(node.body, but, inside=inside or held)
        return
    if isinstance(node, ast.Call) and not inside and _goes_out(node):
        yield node.lineno, ast.unparse(node.func)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if node.name in but:
            return
        for decorator in node.decorator_list:
            if _is_transaction(decorator):
                yield decorator.lineno, ast.unparse(decorator)
        yield from _below(node.body, but, inside=False)
        return
    yield from _below(ast.iter_child_nodes(node), but, inside=inside)


def _below(
    nodes: Iterable[ast.AST], but: Collection[str], *, inside: bool
) -> Iterator[tuple[int, str]]:
    for node in nodes:
        yield from _unmarked(node, but, inside=inside)


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _text(call: ast.Call) -> str | None:
    first = call.args[0] if call.args else None
    written = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return str(ast.literal_eval(first)) if first is not None and written else None


def _taking(tree: ast.AST, mark: ast.Call) -> str | None:
    """Return the method that hands its own first argument on to a mark."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and mark in ast.walk(node):
            taken = {argument.arg for argument in node.args.args}
            if isinstance(mark.args[0], ast.Name) and mark.args[0].id in taken:
                return node.name
    return None


def _is_mark(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in MARKS


def _is_transaction(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return ast.unparse(called) in {"transaction.atomic", "atomic"}


def _goes_out(node: ast.Call) -> bool:
    name = ast.unparse(node.func)
    return name in OUTSIDE or name.rpartition(".")[2] in SENDS
