"""What a document says, in three languages, and what of outside texts is left out."""

from __future__ import annotations

import string
from typing import Any

import pytest

from payments.models import PaymentMethod, Refund
from payments.receipts.content import plain
from payments.receipts.services import content_of, document_of
from payments.receipts.wording import WORDS, language_of
from tests.receipts.conftest import bought, given_back


def said(record: Any) -> dict[str, Any]:
    """Return what the document of a record says, its rows as a table."""
    document = document_of(record)
    assert document is not None
    content = content_of(document)
    return {**content, "rows": dict(content["rows"])}


def _places(text: str) -> set[str]:
    return {name for _text, name, _form, _how in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", sorted(WORDS))
def test_every_language_has_every_sentence_with_the_same_places(language: str) -> None:
    assert {key: _places(text) for key, text in WORDS[language].items()} == {
        key: _places(text) for key, text in WORDS["en"].items()
    }
    assert all(text.strip() == text != "" for text in WORDS[language].values())


@pytest.mark.parametrize(
    ("wanted", "got"),
    [("de", "de"), ("de-AT", "de"), ("DE_ch", "de"), ("ru", "ru"), ("fr", "en"), ("", "en")],
)
def test_a_language_that_we_do_not_have_is_english(wanted: str, got: str) -> None:
    assert language_of(wanted) == got


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("language", "title", "total", "day", "way", "tax"),
    [
        ("en", "Receipt", "25.00 EUR", "October 3, 2026", "Visa ending in 4242", "3.99 EUR"),
        ("en-GB", "Receipt", "25.00 EUR", "3 October 2026", "Visa ending in 4242", "3.99 EUR"),
        ("fr", "Receipt", "25.00 EUR", "October 3, 2026", "Visa ending in 4242", "3.99 EUR"),
        (
            "de",
            "Quittung",
            "25,00 EUR",
            "3. Oktober 2026",
            "Visa mit den Endziffern 4242",
            "3,99 EUR",
        ),
        (
            "ru",
            "Квитанция об оплате",
            "25,00 EUR",
            "3 октября 2026\xa0г.",
            "Visa, последние цифры 4242",
            "3,99 EUR",
        ),
    ],
)
def test_a_receipt_says_all_of_it_in_the_customers_language(
    *, language: str, title: str, total: str, day: str, way: str, tax: str
) -> None:
    words = WORDS[language_of(language)]
    content = said(bought(language=language, tax=399, rate=1900))
    assert (content["title"], content["total_label"]) == (title, words["paid"])
    assert content["total"] == total
    rows = content["rows"]
    assert rows[words["paid_on"]] == " ".join(day.split())
    assert rows[words["customer"]] == "Ana Silva"
    assert rows[words["customer_reference"]] == "CUS-1"
    assert rows[words["payment"]] == "PAY-1"
    assert rows[words["invoice"]] == "INV-1"
    assert rows[words["for"]] == "Service plan"
    assert rows[words["paid_with"]] == way
    assert rows[words["tax"].format(rate="19")] == tax
    assert content["seller"] == [
        "Nordlicht Handels GmbH",
        "Hafenstraße 12",
        "20457 Hamburg",
        words["tax_id"].format(tax_id="DE 123456789"),
    ]


@pytest.mark.django_db
def test_no_tax_no_seller_and_no_digits_leave_no_empty_lines(settings: Any) -> None:
    settings.RECEIPT_SELLER = {"name": "", "address": [], "tax_id": ""}
    payment = bought(description="")
    PaymentMethod.objects.update(brand="", last4="")
    content = said(payment)
    assert content["seller"] == []
    assert content["rows"]["Paid with"] == "Card"
    assert not [label for label in content["rows"] if "Tax" in label or label == "For"]


@pytest.mark.django_db
def test_the_tax_of_all_refunds_adds_up_to_the_tax_of_the_payment() -> None:
    payment = bought(amount=1000, tax=70, rate=755)
    taxes = []
    for number, amount in enumerate((333, 333, 334), start=1):
        content = said(given_back(payment, amount, number))
        assert content["title"] == "Refund receipt"
        taxes.append(content["rows"]["Tax included (7.55 %)"])
    assert taxes == ["0.23 EUR", "0.23 EUR", "0.24 EUR"]


@pytest.mark.django_db
def test_the_tax_of_a_refund_that_failed_later_is_not_counted_before_the_next() -> None:
    payment = bought(amount=1000, tax=70, rate=755)
    for number in (1, 2):
        failed = given_back(payment, 333, number)
        said(failed)
        Refund.objects.filter(pk=failed.pk).update(state="failed", failed_at=failed.created_at)
    content = said(given_back(payment, 334, 3))
    assert content["rows"]["Tax included (7.55 %)"] == "0.23 EUR"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("currency", "amount", "total"), [("JPY", 9899, "9899 JPY"), ("KWD", 1250, "1,250 KWD")]
)
def test_amounts_have_the_decimals_of_their_currency(
    currency: str, amount: int, total: str
) -> None:
    assert said(bought(language="de", amount=amount, currency=currency))["total"] == total


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Ana\x00\x07 Silva\r\n", "Ana Silva"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("\u2066a\u2069\u200fb\u200e", "ab"),
        ("\ufeffA\u200bB\u2028C\x85D", "AB C D"),
        ("ناي\u200cها", "ناي\u200cها"),
        ("e\u0301", "é"),
        ("a\ud800b", "ab"),
        ("<b>&amp;", "<b>&amp;"),
    ],
)
def test_outside_text_keeps_its_letters_and_loses_what_is_no_text(text: str, left: str) -> None:
    assert plain(text) == left
