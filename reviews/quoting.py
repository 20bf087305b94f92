"""Tell quoted text from a person's own words, so that a page can mark it as somebody else's."""

import re
from typing import Final, NamedTuple

# Lines that a mail program marks as quoted, and what stands between a pair of quotation marks.
_QUOTED: Final = re.compile(
    r"(?:^[ \t]*>.*(?:\n|\Z))+|“[^”]+”|„[^“”]+[“”]|«[^»]+»|\"[^\"\n]+\"", re.MULTILINE
)


class Part(NamedTuple):
    """A piece of a message."""

    text: str
    quoted: bool


def parts_of(text: str) -> list[Part]:
    """Split a message into own and quoted pieces; together they are the message."""
    parts, at = [], 0
    for found in _QUOTED.finditer(text):
        parts += [Part(text[at : found.start()], False), Part(found.group(), True)]
        at = found.end()
    return [part for part in (*parts, Part(text[at:], False)) if part.text]
