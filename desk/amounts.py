"""The amount of a request in a form: shown and read in its reader's language, stored in none."""

from django.utils.translation import get_language

from payments.money import Money, MoneyInvalid, money_figure, money_parse, money_plain

AMOUNT = "amount"


def field_shown(name: str, text: str, currency: str) -> str:
    """Return what is stored of a field as the reader of now writes it."""
    if name != AMOUNT:
        return text
    try:
        return money_figure(Money(money_parse(text, currency), currency))
    except MoneyInvalid:
        return text


def field_read(name: str, text: str, currency: str) -> str:
    """Return what was written into a field as it is stored; what is no clear amount stays.

    The service then says in a sentence what is wrong with it, after all that comes before that.
    """
    if name != AMOUNT:
        return text
    try:
        return money_plain(Money(money_parse(text, currency, get_language()), currency))
    except MoneyInvalid:
        return text
