"""House rules of the front end: nothing inline or from elsewhere, small files, contrast."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
STYLES = sorted((ROOT / "static" / "css").glob("*.css"))
COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b|\brgba?\(|\bhsla?\(")


def name(path: Path) -> str:
    """Name a file in a test's id."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=name)
def test_a_template_has_nothing_inline_and_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:|https?://", text)
    for tag in re.findall(r"<script[^>]*>.*?</script>", text, re.DOTALL):
        assert re.fullmatch(
            r"""<script type="module" src="\{% static 'js/[a-z]+\.js' %\}"></script>""", tag
        )
    assert "|safe" not in text
    assert "autoescape off" not in text


@pytest.mark.parametrize("path", SCRIPTS, ids=name)
def test_a_script_is_short_and_says_what_it_is_for(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert lines[0].startswith("// ")
    assert len(lines) < 150
    assert not re.search(r"https?://|\beval\(|new Function|document\.write", "\n".join(lines))


def test_only_server_made_fragments_are_put_in_as_markup() -> None:
    made = {path.name for path in SCRIPTS if "innerHTML" in path.read_text("utf-8")}
    assert made == {"place.js", "review.js"}


@pytest.mark.parametrize("path", STYLES, ids=name)
def test_colours_stand_in_the_tokens_alone(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("/* ")
    assert "http" not in text
    if path.name != "tokens.css":
        assert not COLOUR.search(text)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _themes() -> dict[str, dict[str, str]]:
    text = (ROOT / "static" / "css" / "tokens.css").read_text("utf-8")
    light, dark = text.split("@media", 1)
    found = {
        theme: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", part))
        for theme, part in (("light", light), ("dark", dark))
    }
    assert set(found["light"]) == set(found["dark"])
    return found


READ_ON = {
    "ink": ("ground", "surface", "raised", "accent-wash", "info-wash"),
    "ink-soft": ("ground", "surface", "raised", "accent-wash"),
    "accent": ("ground", "surface", "raised"),
    "accent-strong": ("accent-wash", "surface"),
    "on-accent": ("accent", "accent-strong"),
    "good": ("good-wash", "surface"),
    "warn": ("warn-wash", "surface"),
    "bad": ("bad-wash", "surface", "ground"),
    "info": ("info-wash",),
}
SEEN_ON = {
    "line-strong": ("ground", "surface", "raised"),
    "focus": ("ground", "surface", "raised"),
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_a_contrast_of_four_and_a_half_and_edges_of_three(theme: str) -> None:
    colours = _themes()[theme]
    for table, least in ((READ_ON, 4.5), (SEEN_ON, 3.0)):
        for front, backs in table.items():
            for back in backs:
                assert _contrast(colours[front], colours[back]) >= least, f"{front} on {back}"
