"""The house rules over Python text. Each takes source and returns what is wrong, by line."""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator

Rule = Callable[[str], list[str]]
Function = ast.FunctionDef | ast.AsyncFunctionDef

MOST_MODULE_LINES = 400
MOST_FUNCTION_LINES = 40
REFUSED_MODULES = {"utils", "helpers", "common", "manager"}

# A float is fine for time and never for money.
_TIME = re.compile(r"second|timeout|interval|hold|beaten|poll|pause", re.IGNORECASE)
_BROAD = re.compile(r"\b(Exception|BaseException)\b")


def module_too_long(source: str) -> list[str]:
    """Find a module of more than 400 lines."""
    lines = len(source.splitlines())
    return [f"{lines} lines"] if lines > MOST_MODULE_LINES else []


def function_too_long(source: str) -> list[str]:
    """Find functions of more than 40 lines, signature and docstring counted."""
    return [
        f"{item.lineno}: {item.name} has {_length(item)} lines"
        for item in _functions(ast.parse(source))
        if _length(item) > MOST_FUNCTION_LINES
    ]


def module_without_docstring(source: str) -> list[str]:
    """Find a module with code that does not say its place."""
    tree = ast.parse(source)
    return ["no module docstring"] if tree.body and not ast.get_docstring(tree) else []


def public_without_docstring(source: str) -> list[str]:
    """Find public functions and classes of a module without a docstring."""
    return [
        f"{item.lineno}: {item.name} has no docstring"
        for item in ast.parse(source).body
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not item.name.startswith("_")
        and not ast.get_docstring(item)
    ]


def untyped(source: str) -> list[str]:
    """Find arguments and returns without a type, of any function."""
    return [
        f"{item.lineno}: {item.name} is not typed"
        for item in _functions(ast.parse(source))
        if item.returns is None or any(a.annotation is None for a in _arguments(item))
    ]


def return_direct(source: str) -> list[str]:
    """Find the flag that ends a turn whatever came of the call; refusing it is fine."""
    name, found = "return_direct", []
    for item in ast.walk(ast.parse(source)):
        given = isinstance(item, ast.keyword) and item.arg == name
        written = isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store)
        key = isinstance(item, ast.Constant) and item.value == name
        if given or key or (isinstance(item, ast.Attribute) and written and item.attr == name):
            found.append(f"{getattr(item, 'lineno', 0)}: {name}")
    return found


def marked_safe(source: str) -> list[str]:
    """Find text that is declared harmless instead of being escaped."""
    refused = {"mark_safe", "SafeString", "SafeText"}
    return [
        f"{item.lineno}: {ast.unparse(item.func)}"
        for item in ast.walk(ast.parse(source))
        if isinstance(item, ast.Call)
        and (
            (isinstance(item.func, ast.Name) and item.func.id in refused)
            or (isinstance(item.func, ast.Attribute) and item.func.attr in refused)
        )
    ]


def float_money(source: str) -> list[str]:
    """Find floats, division and rounding where amounts are worked on; time may be a float."""
    lines = source.splitlines()
    return [
        f"{item.lineno}: {lines[item.lineno - 1].strip()}"
        for item in ast.walk(ast.parse(source))
        if isinstance(item, ast.expr)
        and _is_float(item)
        and not _TIME.search(lines[item.lineno - 1])
    ]


def broad_except(source: str) -> list[str]:
    """Find `except Exception` and wider without a comment that says why."""
    lines = source.splitlines()
    found = []
    for item in ast.walk(ast.parse(source)):
        if not isinstance(item, ast.ExceptHandler):
            continue
        if item.type is None or _BROAD.search(ast.unparse(item.type)):
            told = lines[item.lineno - 2 : item.body[0].lineno]
            if not any(_comment(line) for line in told):
                found.append(f"{item.lineno}: {lines[item.lineno - 1].strip()}")
    return found


def bare_ignore(source: str) -> list[str]:
    """Find type and lint suppressions that do not name what they suppress."""
    bare = re.compile(r"type:\s*ignore(?!\[)|noqa(?!:)")
    return [
        f"{token.start[0]}: {token.string}"
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and bare.search(token.string)
    ]


def signal_receiver(source: str) -> list[str]:
    """Find Django signals: what happens on a save would stand nowhere in the flow.

    Those of signing in are let through: Django tells of a failed one in no other way.
    """
    return [
        f"{item.lineno}: {ast.unparse(item)}"
        for item in ast.walk(ast.parse(source))
        if isinstance(item, ast.ImportFrom)
        and (item.module or "").startswith("django.")
        and (item.module or "").endswith(("signals", "dispatch"))
        and item.module != "django.contrib.auth.signals"
    ]


def touches_rows(source: str) -> list[str]:
    """Find Django's database layer in a module that must not know it; enum types are allowed."""
    enums = {"TextChoices", "IntegerChoices"}
    return [
        f"{item.lineno}: {ast.unparse(item)}"
        for item in ast.walk(ast.parse(source))
        if (
            isinstance(item, ast.ImportFrom)
            and (item.module or "").startswith("django.db")
            and not {alias.name for alias in item.names} <= enums
        )
        or (isinstance(item, ast.Attribute) and item.attr == "objects")
        or (isinstance(item, ast.Import) and any("django.db" in a.name for a in item.names))
    ]


def enqueued_before_commit(source: str) -> list[str]:
    """Find `.delay(` and `.apply_async(` called right away instead of after commit."""
    return [
        f"{item.lineno}: {ast.unparse(item)[:60]}"
        for item in ast.walk(ast.parse(source))
        if isinstance(item, ast.Call)
        and isinstance(item.func, ast.Attribute)
        and item.func.attr in {"delay", "apply_async"}
    ]


def task_unnamed(source: str) -> list[str]:
    """Find shared tasks without a name of their own."""
    found = []
    for item in _functions(ast.parse(source)):
        for decorator in item.decorator_list:
            text = ast.unparse(decorator)
            if text.startswith("shared_task") and "name=" not in text:
                found.append(f"{item.lineno}: {item.name} has no pinned name")
    return found


def _functions(tree: ast.AST) -> Iterator[Function]:
    for item in ast.walk(tree):
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
            yield item


def _length(item: Function) -> int:
    return (item.end_lineno or item.lineno) - item.lineno + 1


def _arguments(item: Function) -> Iterator[ast.arg]:
    every = [*item.args.posonlyargs, *item.args.args, *item.args.kwonlyargs]
    every += [extra for extra in (item.args.vararg, item.args.kwarg) if extra]
    yield from (argument for argument in every if argument.arg not in {"self", "cls"})


def _is_float(item: ast.expr) -> bool:
    if isinstance(item, ast.Constant):
        return isinstance(item.value, float)
    if isinstance(item, ast.BinOp):
        # A folder is divided by text; an amount never is.
        return isinstance(item.op, ast.Div) and not _is_text(item.right)
    if isinstance(item, ast.Call) and isinstance(item.func, ast.Name):
        return item.func.id in {"float", "round"}
    return False


def _is_text(item: ast.expr) -> bool:
    return isinstance(item, ast.JoinedStr) or (
        isinstance(item, ast.Constant) and isinstance(item.value, str)
    )


def _comment(line: str) -> bool:
    found = re.search(r"#\s*(.+)$", line)
    return bool(found) and not str(found and found.group(1)).startswith(("noqa", "type:"))
