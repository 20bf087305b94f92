"""The words of the customers' documents, by language. Data, and no sentence depends on a count.

A new language is one more entry; a test holds every entry to the same keys and places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices


class DocumentKind(TextChoices):
    """What a document is for; each kind has numbers of its own."""

    RECEIPT = "receipt", "receipt"
    REFUND_RECEIPT = "refund_receipt", "refund receipt"


NUMBER_PREFIX: Final[Mapping[DocumentKind, str]] = {
    DocumentKind.RECEIPT: "RCT",
    DocumentKind.REFUND_RECEIPT: "RFR",
}
FALLBACK: Final = "en"

WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "en": {
        "receipt": "Receipt",
        "refund_receipt": "Refund receipt",
        "number": "Number",
        "issued_on": "Issued on",
        "paid_on": "Paid on",
        "refunded_on": "Refunded on",
        "customer": "Customer",
        "customer_reference": "Customer number",
        "payment": "Payment",
        "refund": "Refund",
        "invoice": "Invoice",
        "for": "For",
        "reason": "Reason",
        "paid_with": "Paid with",
        "goes_back_to": "Goes back to",
        "paid": "Paid",
        "refunded": "Refunded",
        "tax": "Tax included ({rate} %)",
        "tax_id": "Tax number: {tax_id}",
        "ending": "{name} ending in {digits}",
        "card": "Card",
        "paypal": "PayPal",
        "gift_card": "Gift card",
        "page": "Page {page} of {pages}",
    },
    "de": {
        "receipt": "Quittung",
        "refund_receipt": "Erstattungsbeleg",
        "number": "Nummer",
        "issued_on": "Ausgestellt am",
        "paid_on": "Bezahlt am",
        "refunded_on": "Erstattet am",
        "customer": "Kunde",
        "customer_reference": "Kundennummer",
        "payment": "Zahlung",
        "refund": "Erstattung",
        "invoice": "Rechnung",
        "for": "Für",
        "reason": "Grund",
        "paid_with": "Zahlungsmittel",
        "goes_back_to": "Zurück auf",
        "paid": "Bezahlt",
        "refunded": "Erstattet",
        "tax": "Enthaltene Steuer ({rate} %)",
        "tax_id": "Steuernummer: {tax_id}",
        "ending": "{name} mit den Endziffern {digits}",
        "card": "Karte",
        "paypal": "PayPal",
        "gift_card": "Geschenkkarte",
        "page": "Seite {page} von {pages}",
    },
    "ru": {
        "receipt": "Квитанция об оплате",
        "refund_receipt": "Квитанция о возврате",
        "number": "Номер",
        "issued_on": "Дата выдачи",
        "paid_on": "Дата оплаты",
        "refunded_on": "Дата возврата",
        "customer": "Клиент",
        "customer_reference": "Номер клиента",
        "payment": "Платёж",
        "refund": "Возврат",
        "invoice": "Счёт",
        "for": "Назначение",
        "reason": "Причина",
        "paid_with": "Способ оплаты",
        "goes_back_to": "Куда возвращено",
        "paid": "Оплачено",
        "refunded": "Возвращено",
        "tax": "В том числе налог ({rate} %)",
        "tax_id": "Налоговый номер: {tax_id}",
        "ending": "{name}, последние цифры {digits}",
        "card": "Карта",
        "paypal": "PayPal",
        "gift_card": "Подарочная карта",
        "page": "Страница {page} из {pages}",
    },
}


def language_of(wanted: str) -> str:
    """Return the language of a document for a customer's ("de-AT" is "de"); English if unknown."""
    base = _base(wanted)
    return base if base in WORDS else FALLBACK


def locale_tag(wanted: str) -> str:
    """Return whose habits dates and amounts follow: the customer's ("en-GB"), if we know them."""
    return wanted if _base(wanted) in WORDS else FALLBACK


def _base(wanted: str) -> str:
    return wanted.replace("_", "-").split("-")[0].lower()
