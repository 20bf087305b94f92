"""The house rules over templates: nothing runs in a page that is not a file of ours."""

import re

_RULES = {
    "text declared safe": re.compile(r"\|\s*safe(?:seq)?\b|\{%\s*autoescape\s+off"),
    "handler in an attribute": re.compile(r"<[^>]*\son[a-z]+\s*=", re.IGNORECASE),
    "style in an attribute": re.compile(r"<[^>]*\sstyle\s*=", re.IGNORECASE),
    "inline style": re.compile(r"<style\b", re.IGNORECASE),
    "inline script": re.compile(
        r"<script\b(?![^>]*\bsrc\s*=)(?![^>]*type=\"application/json\")", re.IGNORECASE
    ),
    "address of another host": re.compile(
        r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", re.IGNORECASE
    ),
    "script address": re.compile(r"(?:src|href|action)\s*=\s*[\"']?\s*javascript:", re.IGNORECASE),
}


_TAGS = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_VALUES = re.compile(r"\"[^\"<>]*\"|'[^'<>]*'")
_ON_NAMES = {"handler in an attribute", "style in an attribute"}


def unsafe_markup(source: str) -> list[str]:
    """Find what the content policy would stop, or escaping would not."""
    # What stands inside a value is text, and must not be taken for the name of an attribute.
    names = _VALUES.sub(_emptied, _TAGS.sub(_emptied, source))
    return [
        f"{source.count(chr(10), 0, match.start()) + 1}: {words}"
        for words, pattern in _RULES.items()
        for match in pattern.finditer(names if words in _ON_NAMES else source)
    ]


def _emptied(match: re.Match[str]) -> str:
    """Blank a piece out and keep its place."""
    return re.sub(r"[^\n]", " ", match.group())
