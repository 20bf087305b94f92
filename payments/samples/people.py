"""The hundred ordinary customers of the sample data: names in the scripts of their people."""

from __future__ import annotations

from pathlib import Path


def ordinary_people() -> list[tuple[str, str]]:
    """Return name and the part of the address before the at sign, in the order of the file."""
    lines = Path(__file__).with_name("people.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("\t") for line in lines]
    return [(name, mail) for mail, name in pairs]
