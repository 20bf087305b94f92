"""Clean what people and models write into a ticket; pure.

Nothing is escaped or stripped of markup here: a ticket holds plain text, literally.
"""

import unicodedata
from typing import Final

from django.utils.translation import gettext as _

from tickets.errors import TicketRefused
from tickets.models import SUBJECT_LENGTH

BODY_LENGTH: Final = 10_000
REFERENCE_LENGTH: Final = 60


def one_line(text: str) -> str:
    """Return the text as one line: breaks of every kind become a space, invisible signs go."""
    return " ".join("".join(_line_sign(sign) for sign in text).split())


def subject_clean(text: str) -> str:
    """Return a subject of one line.

    Raises: TicketRefused when nothing readable is left, or it is too long.
    """
    clean = one_line(text)
    if not _readable(clean):
        raise TicketRefused(_("A ticket needs a subject. No ticket was opened."))
    if len(clean) > SUBJECT_LENGTH:
        raise TicketRefused(
            _(
                "The subject has {length} characters; {most} are the most. Put the rest into the "
                "text. No ticket was opened."
            ).format(length=len(clean), most=SUBJECT_LENGTH)
        )
    return clean


def body_clean(text: str) -> str:
    """Return the text with its lines, without signs that no row or page can hold.

    Raises: TicketRefused when it is too long.
    """
    # str.splitlines knows every separator that some program takes for the end of a line.
    lines = ("".join(_line_sign(sign) for sign in line).rstrip() for line in text.splitlines())
    clean = "\n".join(lines).strip()
    if len(clean) > BODY_LENGTH:
        raise TicketRefused(
            _(
                "The text has {length} characters; {most} are the most. No ticket was opened."
            ).format(length=len(clean), most=BODY_LENGTH)
        )
    return clean


def same_text(text: str) -> str:
    """Return what two spellings of one wish have in common."""
    folded = unicodedata.normalize("NFKC", one_line(text)).casefold()
    return " ".join(folded.split()).rstrip(" .!?…")


def _readable(text: str) -> bool:
    return any(unicodedata.category(sign)[0] in "LNPS" for sign in text)


def _line_sign(sign: str) -> str:
    kind = unicodedata.category(sign)
    if kind in ("Cc", "Zl", "Zp", "Zs"):
        return " "
    # Joiners belong to scripts and emoji; other format signs only hide or turn text around.
    if kind in ("Cs", "Cn") or (kind == "Cf" and sign not in "\u200c\u200d"):
        return ""
    return sign
