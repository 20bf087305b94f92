"""A document as PDF: the same bytes whenever and wherever it is made.

Nothing in it comes from the clock or from chance: the date is the document's, and the fonts are
those in `fonts/`, embedded with the signs that are used and no others. Lengths are millimetres.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from fpdf import FPDF
from fpdf.enums import Align, XPos, YPos
from fpdf.fonts import TTFFont
from fpdf.prefs import ViewerPreferences

from payments.receipts.content import Content
from payments.receipts.models import Document
from payments.receipts.services import content_of

FONTS: Final = Path(__file__).parent / "fonts"
_FAMILY: Final = "DejaVu"
_MARGIN: Final = 20
_LABEL: Final = 52
_LINE: Final = 6
_SOFT: Final = 90
_INK: Final = 20
_MISSING: Final = "\ufffd"


class Sheet(FPDF):
    """A4 pages with a line at the foot; it knows beforehand how many there will be."""

    def __init__(self, content: Content, pages: int) -> None:
        """Begin an empty document."""
        super().__init__(format="A4")
        self.content, self.pages_known = content, pages
        self.set_margin(_MARGIN)
        self.set_auto_page_break(auto=True, margin=_MARGIN + 5)
        self.add_font(_FAMILY, "", FONTS / "DejaVuSans.ttf")
        self.add_font(_FAMILY, "B", FONTS / "DejaVuSans-Bold.ttf")
        # Joins Arabic letters and orders words from right to left.
        self.set_text_shaping(use_shaping_engine=True)

    def drawable(self, text: str) -> str:
        """Return the text with a visible mark for each sign that the fonts do not have."""
        font = self.fonts[_FAMILY.lower()]
        known = font.cmap if isinstance(font, TTFFont) else {}
        return "".join(sign if ord(sign) in known else _MISSING for sign in text)

    def fonts_close(self) -> None:
        """Close the files of the fonts, which the library leaves open."""
        for font in self.fonts.values():
            if isinstance(font, TTFFont):
                font.ttfont.close()

    def footer(self) -> None:
        """Write the number and the page at the foot."""
        place = self.content["page"].format(page=self.page_no(), pages=self.pages_known)
        self.set_y(-_MARGIN)
        self.set_font(_FAMILY, "", 8)
        self.set_text_color(_SOFT)
        self.cell(0, 5, f"{self.content['number']}   {place}", align=Align.C)


def document_pdf(document: Document) -> bytes:
    """Return the document as a PDF file."""
    pages, pdf = _printed(document, 1)
    return pdf if pages == 1 else _printed(document, pages)[1]


def _printed(document: Document, pages: int) -> tuple[int, bytes]:
    """Return how many pages it has come to, and the file."""
    sheet = _laid_out(document, content_of(document), pages)
    try:
        return sheet.pages_count, bytes(sheet.output())
    finally:
        sheet.fonts_close()


def _laid_out(document: Document, content: Content, pages: int) -> Sheet:
    sheet = Sheet(content, pages)
    _describe(sheet, document, content)
    sheet.add_page()
    _head(sheet, content)
    _total(sheet, content)
    for label, value in content["rows"]:
        _row(sheet, label, value)
    return sheet


def _describe(sheet: Sheet, document: Document, content: Content) -> None:
    sheet.set_title(f"{content['title']} {content['number']}")
    sheet.set_lang(content["language"])
    if content["seller"]:
        sheet.set_author(content["seller"][0])
    sheet.set_creator("Countersign")
    sheet.set_creation_date(document.issued_at)
    sheet.viewer_preferences = ViewerPreferences(display_doc_title=True)


def _head(sheet: Sheet, content: Content) -> None:
    sheet.set_text_color(_SOFT)
    sheet.set_font(_FAMILY, "", 9)
    for line in content["seller"]:
        _line(sheet, 5, line)
    if content["seller"]:
        sheet.ln(8)
    sheet.set_text_color(_INK)
    sheet.set_font(_FAMILY, "B", 20)
    _line(sheet, 10, content["title"])
    sheet.set_text_color(_SOFT)
    sheet.set_font(_FAMILY, "", 10)
    _line(sheet, _LINE, f"{content['number_label']} {content['number']}")
    sheet.ln(6)


def _total(sheet: Sheet, content: Content) -> None:
    sheet.set_draw_color(_INK)
    sheet.set_text_color(_INK)
    sheet.set_font(_FAMILY, "B", 14)
    _rule(sheet)
    sheet.cell(_LABEL, 14, content["total_label"])
    sheet.cell(0, 14, content["total"], align=Align.R, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    _rule(sheet)
    sheet.ln(6)


def _row(sheet: Sheet, label: str, value: str) -> None:
    """Write a label with its value beside it; a long value goes on in lines below, or pages."""
    sheet.set_font(_FAMILY, "", 10)
    sheet.set_text_color(_SOFT)
    with sheet.offset_rendering() as trial:
        trial.multi_cell(_LABEL - 2, _LINE, label)
    if trial.page_break_triggered:
        sheet.add_page()
    top, page = sheet.get_y(), sheet.page_no()
    sheet.multi_cell(_LABEL - 2, _LINE, label, align=Align.L, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    below = sheet.get_y()
    sheet.set_xy(_MARGIN + _LABEL, top)
    sheet.set_text_color(_INK)
    sheet.multi_cell(
        0, _LINE, sheet.drawable(value), align=Align.L, new_x=XPos.LMARGIN, new_y=YPos.NEXT
    )
    if sheet.page_no() == page:
        sheet.set_y(max(below, sheet.get_y()))
    sheet.ln(2)


def _line(sheet: Sheet, height: int, text: str) -> None:
    text = sheet.drawable(text)
    sheet.multi_cell(0, height, text, align=Align.L, new_x=XPos.LMARGIN, new_y=YPos.NEXT)


def _rule(sheet: Sheet) -> None:
    at = sheet.get_y()
    sheet.line(_MARGIN, at, sheet.w - _MARGIN, at)
