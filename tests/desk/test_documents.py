"""Receipts, invoices, articles, the sign-in page and the place in the stream."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone

from desk.views.stream import _last_seen
from knowledge.models import Article
from payments.models import Customer, Payment, Refund
from payments.receipts.models import Document
from reviews.audit.models import Entry
from tests.desk.conftest import Enter
from tests.desk.test_chat import words


def sheet(enter: Enter, user: User, reference: str) -> str:
    """Return what stands on the sheet of a reference."""
    answer = enter(user).get(reverse("document", args=[reference]))
    assert answer.status_code == 200
    return words(answer.content.decode())


def test_a_payment_has_a_receipt_with_its_invoice_and_refunds(
    enter: Enter, tom: User, refund: Refund
) -> None:
    said = sheet(enter, tom, "PAY-7001")
    assert "Receipt PAY-7001 succeeded Paid 25.00 EUR Customer Ana Silva" in said
    assert "Paid with Visa ending in 4242 Invoice INV-7001 For Service plan" in said
    assert "Refund REF-7001, 5.00 EUR, succeeded" in said


def test_a_reference_is_found_however_it_is_spelled(
    enter: Enter, tom: User, payment: Payment
) -> None:
    assert "Receipt PAY-7001" in sheet(enter, tom, "pay-7001")


@pytest.mark.parametrize(
    ("state", "reads"),
    [
        ("succeeded", "Refund receipt REF-7001 succeeded Refunded 5.00 EUR"),
        ("sending", "Refund REF-7001 being sent On its way 5.00 EUR"),
        ("unknown", "Refund REF-7001 being checked On its way 5.00 EUR"),
        ("failed", "Refund REF-7001 failed Not refunded 5.00 EUR"),
    ],
)
def test_a_refund_is_never_called_refunded_before_it_is(
    state: str, reads: str, enter: Enter, tom: User, refund: Refund
) -> None:
    Refund.objects.filter(pk=refund.pk).update(state=state)
    said = sheet(enter, tom, "REF-7001")
    assert reads in said
    assert ("Refunded" in said) == (state == "succeeded")


def test_yen_has_no_decimals_on_a_receipt(enter: Enter, tom: User, payment: Payment) -> None:
    Payment.objects.filter(pk=payment.pk).update(amount_minor=9899, currency="JPY")
    assert "Paid 9899 JPY" in sheet(enter, tom, "PAY-7001")


def test_a_failed_payment_is_no_receipt(enter: Enter, tom: User, payment: Payment) -> None:
    Payment.objects.filter(pk=payment.pk).update(state="failed")
    said = sheet(enter, tom, "PAY-7001")
    assert "Payment that failed PAY-7001 failed Not paid 25.00 EUR" in said
    assert "Receipt" not in said


def test_the_customers_receipt_stands_beside_it_in_the_customers_language(
    enter: Enter, tom: User, payment: Payment
) -> None:
    Customer.objects.update(language="de", name="<b>Ana</b>")
    html = enter(tom).get(reverse("document", args=["PAY-7001"])).content.decode()
    said = words(html)
    assert "The customer’s document, in German Download PDF Quittung Nummer RCT-" in said
    assert "Bezahlt 25,00 EUR" in said
    assert "Paid 25.00 EUR" in said
    assert '<article class="receipt" lang="de">' in html
    assert '<dd dir="auto">&lt;b&gt;Ana&lt;/b&gt;</dd>' in html
    number = Document.objects.get().number
    assert number in sheet(enter, tom, number.lower())


def test_the_document_of_a_refund_that_failed_later_is_void_and_not_handed_out(
    enter: Enter, tom: User, refund: Refund
) -> None:
    Refund.objects.filter(pk=refund.pk).update(state="succeeded")
    assert "Download PDF" in sheet(enter, tom, "REF-7001")
    kept = Document.objects.values().get()
    when = timezone.now().replace(2026, 11, 3)
    Refund.objects.filter(pk=refund.pk).update(state="failed", failed_at=when)
    void = "This refund failed on 3 November 2026; the document no longer holds."
    said = sheet(enter, tom, "REF-7001")
    assert void in said
    assert "Download PDF" not in said
    answer = enter(tom).get(reverse("document-file", args=["REF-7001"]))
    assert answer.status_code == 410
    assert void in words(answer.content.decode())
    assert not Entry.objects.filter(action="document.downloaded").exists()
    assert Document.objects.values().get() == kept


def test_the_pdf_is_handed_out_as_a_file_and_recorded(
    enter: Enter, tom: User, dana: User, payment: Payment
) -> None:
    address = reverse("document-file", args=["PAY-7001"])
    answer = enter(tom).get(address)
    number = Document.objects.get().number
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{number}.pdf"'
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.content.startswith(b"%PDF-")
    assert enter(tom).get(address).content == answer.content
    enter(tom).get(reverse("document", args=["PAY-7001"]))
    assert enter(dana).get(address).status_code == 404
    rows = Entry.objects.filter(action__startswith="document.").order_by("id")
    assert list(rows.values_list("action", "actor_name", "reference")) == [
        ("document.downloaded", "tom", number),
        ("document.downloaded", "tom", number),
        ("document.viewed", "tom", number),
        ("document.denied", "dana", "PAY-7001"),
    ]


@pytest.mark.parametrize("reference", ["INV-7001", "REF-7001", "PAY-9999"])
def test_what_has_no_document_of_the_customer_has_no_file(
    reference: str, enter: Enter, tom: User, refund: Refund
) -> None:
    Refund.objects.update(state="sending")
    assert enter(tom).get(reverse("document-file", args=[reference])).status_code == 404
    assert not Document.objects.exists()


def test_who_may_see_no_customer_finds_no_document(
    enter: Enter, tom: User, payment: Payment
) -> None:
    tom.groups.clear()
    for reference in ("PAY-7001", "INV-7001"):
        assert enter(tom).get(reverse("document", args=[reference])).status_code == 404


def test_articles_are_listed_searched_and_read(enter: Enter, tom: User) -> None:
    Article.objects.create(slug="times", title="Refund times", body="5 days.", state="published")
    Article.objects.create(slug="secret", title="Draft", body="Not yet.", state="draft")
    client = enter(tom)
    said = words(client.get(reverse("articles")).content.decode())
    assert "Refund times" in said
    assert "Draft" not in said
    found = words(client.get(reverse("articles"), {"q": "refund"}).content.decode())
    assert "Found for “refund” Refund times" in found
    none = words(client.get(reverse("articles"), {"q": "<b>zebra"}).content.decode())
    assert "No article answers “&lt;b&gt;zebra”" in none
    assert "5 days." in words(client.get(reverse("article", args=["times"])).content.decode())
    assert client.get(reverse("article", args=["secret"])).status_code == 404


def test_articles_need_the_right(enter: Enter, tom: User) -> None:
    tom.groups.clear()
    answer = enter(tom).get(reverse("articles"))
    assert answer.status_code == 403
    assert "Your role does not allow this" in words(answer.content.decode())


def test_demo_accounts_are_offered_under_the_demo_setting_alone(
    client: Client, db: None, settings: Any
) -> None:
    settings.DEMO = True
    assert "This is a demonstration" in words(client.get("/login/").content.decode())
    settings.DEMO = False
    html = client.get("/login/").content.decode()
    assert "This is a demonstration" not in words(html)
    assert "demo" not in html.casefold()


def test_a_wrong_password_is_said_without_saying_which_was_wrong(client: Client, tom: User) -> None:
    texts = set()
    for name in ("tom", "nobody"):
        answer = client.post("/login/", {"username": name, "password": "wrong"})
        texts.add(words(answer.content.decode()))
        assert f'value="{name}"' in answer.content.decode()
    assert len(texts) == 1
    assert "That name and password do not belong together." in texts.pop()


@pytest.mark.parametrize(
    ("header", "address", "seen"),
    [("12", "?after=7", "12"), ("", "?after=7", "7"), ("", "", None), ("x", "?after=7", "x")],
)
def test_a_reconnect_goes_on_from_its_own_place(
    header: str, address: str, seen: str | None
) -> None:
    headers = {"Last-Event-ID": header} if header else {}
    assert _last_seen(RequestFactory().get(f"/stream{address}", headers=headers)) == seen
