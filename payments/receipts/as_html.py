"""A document as HTML: rendered with everything escaped, then sanitised as a second wall."""

from __future__ import annotations

from typing import Final

import nh3
from django.template.loader import render_to_string

from payments.receipts.models import Document
from payments.receipts.services import content_of

TAGS: Final = frozenset({"article", "header", "h2", "p", "span", "address", "br", "dl", "dt", "dd"})
_ATTRIBUTES: Final = {"article": {"lang"}, "span": {"dir"}, "dd": {"dir"}}
_CLASSES: Final = {
    "article": {"receipt"},
    "p": {"number", "total"},
    "dl": {"card-facts"},
}


class Sanitised(str):
    """HTML that went through `sanitise`; only that makes one, so a template may show it as is."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the HTML; Django asks for it instead of escaping."""
        return str(self)


def sanitise(html: str) -> Sanitised:
    """Return the HTML with nothing left but the tags and attributes that a document has."""
    clean = nh3.clean(
        html,
        tags=set(TAGS),
        attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
        allowed_classes={tag: set(names) for tag, names in _CLASSES.items()},
        url_schemes=set(),
        link_rel=None,
        strip_comments=True,
    )
    return Sanitised(clean)


def document_html(document: Document) -> Sanitised:
    """Return the document as an article in its own language, to stand within a page."""
    content = content_of(document)
    return sanitise(render_to_string("receipts/receipt.html", {"content": content}))
