"""What people and models wrote is inert text everywhere, with our references as links."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from desk.templatetags.desk import linked
from reviews.models import Review
from tests.desk.conftest import Enter, North, asked, called, ended
from tickets.models import Ticket

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "[click](JaVaScRiPt:alert(1))",
    '<a href="java\tscript:alert(1)">x</a>',
    '<a href="java\nscript:alert(1)">x</a>',
    "data:text/html,<script>alert(1)</script>",
    '" autofocus onfocus="alert(1)',
    "{{ settings.SECRET_KEY }} {% debug %}",
    "&lt;script&gt;",
)


class Tags(HTMLParser):
    """Collects what a browser would make of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note the text."""
        self.said += data


def parsed(html: str) -> Tags:
    """Read a piece of markup as a browser does."""
    parser = Tags()
    parser.feed(html)
    parser.close()
    return parser


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("PAY-10012", "/documents/PAY-10012/"),
        ("see REF-ABH6FBF6.", "/documents/REF-ABH6FBF6/"),
        ("(INV-1001)", "/documents/INV-1001/"),
        ("TCK-7KX2M9QD, please", "/tickets/TCK-7KX2M9QD/"),
        ("EXP-YQ7MBBJN:", "/exports/EXP-YQ7MBBJN/"),
        ("“PAY-W2611340”", "/documents/PAY-W2611340/"),
        ("'PAY-1001'", "/documents/PAY-1001/"),
    ],
)
def test_a_reference_becomes_a_link_and_the_text_stays(text: str, address: str) -> None:
    found = parsed(linked(text))
    assert [(tag, attrs["href"]) for tag, attrs in found.tags] == [("a", address)]
    assert found.said == text


@pytest.mark.parametrize(
    "text",
    [
        "CUS-1001",
        "pay-10012",
        "XPAY-10012",
        "PAY-10012x",
        "https://example.com/PAY-10012",
        "PAY-10012@example.com",
        "ana-PAY-10012",
        "PAY-",
    ],
)
def test_what_only_looks_like_a_reference_stays_text(text: str) -> None:
    found = parsed(linked(text))
    assert found.tags == []
    assert found.said == text


@given(
    st.lists(
        st.one_of(st.sampled_from((*HOSTILE, "PAY-10012", "&", "<", '"', "'", ";")), st.text()),
        max_size=8,
    ).map("".join)
)
def test_any_text_gives_links_of_ours_and_nothing_else(text: str) -> None:
    html = linked(text)
    # A browser reads \\r and NUL in its own way; what matters is which tags it sees.
    for tag, attrs in parsed(html).tags:
        assert tag == "a"
        assert set(attrs) == {"class", "href"}
        assert re.fullmatch(r"/(documents|tickets|exports)/[A-Z0-9-]+/", attrs["href"] or "")


ONE_LINE = dict.fromkeys((*range(32), *range(127, 160)), " ")
TURNED = "refund \u202e00.5\u202c EUR \u2066x\u2069 \x07\x1b[31m\x85"


def test_signs_that_turn_or_hide_text_are_shown_as_signs() -> None:
    assert linked(TURNED) == "refund �00.5� EUR �x� ��[31m�"
    assert linked("line\n\tnext سلام\u200f \u200d👩") == "line\n\tnext سلام\u200f \u200d👩"


def test_no_page_lets_a_text_turn_what_stands_around_it(north: North, enter: Enter) -> None:
    for user, address in _written_everywhere(TURNED, north):
        html = enter(user).get(address).content.decode()
        assert "�00.5�" in html, address
        acting = r".*[\u202a-\u202e\u2066-\u2069\x07\x1b\x85].*"
        assert re.findall(acting, html) == [], address
        for piece in re.findall(r"(?s)<([a-z0-9]+)\b([^<>]*)>[^<>]*�00.5�", html):
            assert piece[0] in {"bdi", "title"} or 'dir="auto"' in piece[1], f"{address} {piece}"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_inert_on_every_page_that_shows_it(
    text: str, north: North, enter: Enter
) -> None:
    """Look at every page that shows what people or models may write."""
    for user, address in _written_everywhere(text, north):
        answer = enter(user).get(address)
        assert answer.status_code == 200, address
        _assert_inert(answer.content.decode(), address)
        assert "script-src 'self'" in answer.headers["Content-Security-Policy"], address


def _written_everywhere(text: str, north: North) -> list[tuple[User, str]]:
    """Put the text wherever people or models may write; return who sees it on which page."""
    talk, review, payment, ticket = north.talk, north.review, north.payment, north.ticket
    run = asked(talk, text)
    called(run, content=text, arguments={"key": text})
    ended(run, answer=text, done=[text], not_done=[text])
    rows = [{"label": text, "text": text}]
    Review.objects.filter(pk=review.pk).update(title=text, card=rows, fields={"reason": text})
    Ticket.objects.filter(pk=ticket.pk).update(subject=text.translate(ONE_LINE), body=text)
    payment.customer.name = text
    payment.customer.save()
    talk.refresh_from_db()
    talk.title = talk.customer_label = text
    talk.save()
    return [
        (talk.owner, reverse("home")),
        (talk.owner, reverse("chat", args=[talk.pk])),
        (talk.owner, reverse("run", args=[run.pk])),
        (talk.owner, reverse("reviews")),
        (talk.owner, reverse("review", args=[review.pk])),
        (talk.owner, reverse("document", args=[payment.reference])),
        (talk.owner, reverse("tickets")),
        (talk.owner, reverse("ticket", args=[ticket.reference])),
    ]


def _assert_inert(html: str, address: str) -> None:
    for tag, attrs in parsed(html).tags:
        assert tag not in {"img", "iframe", "object", "embed", "style"}, address
        if tag == "script":
            assert (attrs["src"] or "").startswith("/static/js/"), address
        for name, value in attrs.items():
            assert not name.startswith("on"), f"{address} {tag} {name}"
            if name in {"href", "src", "action", "formaction"}:
                assert re.match(r"[/#]", value or ""), f"{address} {value}"
