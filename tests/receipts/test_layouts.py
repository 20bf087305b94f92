"""HTML that cannot run anything, and a PDF that is the same file wherever it is made."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

import pytest
from fpdf import FPDF
from fpdf.fonts import TTFFont

from payments.receipts import as_pdf
from payments.receipts.as_html import TAGS, Sanitised, document_html, sanitise
from payments.receipts.as_pdf import FONTS, document_pdf
from payments.receipts.models import Document
from payments.receipts.services import document_of
from tests.receipts.conftest import bought

HOSTILE: Final = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    '<a href="javascript:alert(1)">x</a>',
    "</dd></dl></article><b>",
    "<svg/onload=alert(1)//",
    '" onmouseover="alert(1)',
    "<!--",
    "<style>*{display:none}",
    "{{ 7|add:7 }}{% debug %}",
    "&lt;script&gt;",
    "evil\u202egnp.exe",
]
DRAWN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]")


class Read(HTMLParser):
    """Read what a browser would find: tags, attributes, text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag with its attributes."""
        self.tags.append(tag)
        self.attributes |= {name for name, _value in attrs}

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


def issued(**values: Any) -> Document:
    """Return the document of a new payment."""
    document = document_of(bought(**values))
    assert document is not None
    return document


@pytest.mark.django_db
@pytest.mark.parametrize("text", HOSTILE)
def test_what_comes_from_outside_is_text_in_html(text: str) -> None:
    plain = Read(document_html(issued(number=1)))
    read = Read(html := document_html(issued(number=2, name=text, description=text)))
    assert read.tags == plain.tags
    assert read.attributes == {"lang", "class", "dir"}
    shown = DRAWN.sub("", text)
    assert read.text.count(shown) == 2
    assert not DRAWN.search(html)
    assert html.count("</article>") == 1
    assert html.rstrip().endswith("</article>")


@pytest.mark.parametrize("text", HOSTILE)
def test_the_second_wall_holds_without_the_first(text: str) -> None:
    html = sanitise(f'<article class="receipt x" onclick="go()">{text}</article>')
    read = Read(html)
    assert set(read.tags) <= TAGS
    assert read.attributes <= {"class", "lang", "dir"}
    assert "alert(1)" not in html or not re.search(r"<[^>]*alert", html)
    assert 'class="receipt"' in html


def test_only_what_was_sanitised_is_shown_as_it_is() -> None:
    assert isinstance(sanitise("<p>a</p>"), Sanitised)
    assert sanitise("<p><i>a</i><script>b</script></p>") == "<p>a</p>"


@pytest.mark.django_db
def test_the_html_names_its_language_and_lets_each_name_run_its_own_way() -> None:
    html = document_html(issued(language="ru", name="محمد بن عبد الله"))
    assert 'lang="ru"' in html
    assert '<dd dir="auto">محمد بن عبد الله</dd>' in html


def drawn(document: Document, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], bytes]:
    """Return the texts that were put on the pages, in order, and the file."""
    texts: list[str] = []
    for name in ("cell", "multi_cell"):
        original = getattr(FPDF, name)

        def noted(self: FPDF, w: Any, h: Any, text: str, *, _as: Any = original, **how: Any) -> Any:
            texts.append(text)
            return _as(self, w, h, text, **how)

        monkeypatch.setattr(as_pdf.Sheet, name, noted)
    return texts, document_pdf(document)


@pytest.mark.django_db
@pytest.mark.parametrize("language", ["en", "de", "ru"])
def test_the_pdf_draws_all_that_the_document_says(
    language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = issued(language=language, tax=399, rate=1900, name="Ольга Γιώργος محمد דוד")
    texts, pdf = drawn(document, monkeypatch)
    content = document.content
    for line in (content["title"], content["total_label"], content["total"], *content["seller"]):
        assert line in texts
    for label, value in content["rows"]:
        assert {label, value} <= set(texts)
    assert texts[-1].endswith(content["page"].format(page=1, pages=1))
    assert pdf.startswith(b"%PDF-")
    assert f"/Lang ({language})".encode() in pdf
    for name in (b"/Title", b"/Author", b"/CreationDate", b"/DisplayDocTitle true"):
        assert name in pdf


@pytest.mark.django_db
def test_a_pdf_is_small_and_has_its_fonts_with_it() -> None:
    pdf = document_pdf(issued(language="ru"))
    assert len(pdf) < 60_000
    assert pdf.count(b"/FontFile2") == 2


@pytest.mark.django_db
def test_long_text_goes_on_over_pages_that_say_how_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = issued()
    document.content["rows"].append(["For", "many words " * 600 + "W" * 300])
    texts, pdf = drawn(document, monkeypatch)
    pages = pdf.count(b"/Type /Page\n")
    assert pages >= 2
    feet = [text.split("   ")[1] for text in texts if text.startswith(f"{document.number}   ")]
    assert feet[-pages:] == [f"Page {page} of {pages}" for page in range(1, pages + 1)]


@pytest.mark.django_db
def test_a_sign_that_the_fonts_lack_leaves_a_visible_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, _pdf = drawn(issued(name="王 Ana"), monkeypatch)
    assert "\ufffd Ana" in texts


@pytest.mark.parametrize("name", ["DejaVuSans.ttf", "DejaVuSans-Bold.ttf"])
def test_the_fonts_have_the_scripts_that_names_are_written_in(name: str) -> None:
    sheet = FPDF()
    sheet.add_font("F", "", FONTS / name)
    font = sheet.fonts["f"]
    assert isinstance(font, TTFFont)
    known = dict(font.cmap)
    font.ttfont.close()
    assert {ord(sign) for sign in "AzÄßéłŞЖёΩά€…–“”«»№\ufffd"} <= known.keys()
    if name == "DejaVuSans.ttf":
        assert {ord(sign) for sign in "محمدדוד"} <= known.keys()
    assert "Permission is hereby granted" in (FONTS / "LICENSE").read_text(encoding="utf-8")


PRINTS: Final = """
import hashlib, json, sys
from datetime import datetime
import django
django.setup()
from payments.receipts.as_pdf import document_pdf
from payments.receipts.models import Document
row = json.load(sys.stdin)
row["issued_at"] = datetime.fromisoformat(row["issued_at"])
print(hashlib.sha256(document_pdf(Document(**row))).hexdigest())
"""


@pytest.mark.django_db
def test_the_same_document_is_the_same_file_in_another_process_and_zone() -> None:

    document = issued(language="de", name="محمد Müller")
    row = {"number": document.number, "content": document.content}
    told = json.dumps(row | {"issued_at": document.issued_at.isoformat()})
    other = subprocess.run(
        [sys.executable, "-c", PRINTS],
        input=told,
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
        env=os.environ | {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
    )
    here = hashlib.sha256(document_pdf(document)).hexdigest()
    assert other.stdout.split()[-1] == here
