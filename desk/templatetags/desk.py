"""How text, amounts and icons are written in templates. Nothing here trusts what people wrote."""

import re
from dataclasses import dataclass
from typing import Final

from django import template
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from payments.balances import refunds_pause
from payments.currencies import EXPONENTS
from payments.models import Pause
from payments.money import Money, money_format, money_in
from reviews import selectors as reviews
from reviews.models import Review

register = template.Library()

ROUTES: Final = {
    "PAY": "document",
    "REF": "document",
    "INV": "document",
    "TCK": "ticket",
    "EXP": "export",
}
# A reference never follows one of these signs: it is part of an address or of a longer word then.
REFERENCE: Final = re.compile(
    r"(?<![\w&#/@.-])(?P<kind>PAY|REF|INV|TCK|EXP)-[A-Z0-9]{2,}(?:-[A-Z0-9]+)*(?![\w@/])"
)
# Signs that turn the reading order of what follows, or that no font shows: what stands on a page
# could read otherwise than it is. Marks of direction and joiners stay: scripts need them.
_UNSHOWN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]"
)


@register.filter
def visible(text: object) -> str:
    """Put a sign that is seen for each that would act unseen; for attributes and titles."""
    return _UNSHOWN.sub("\ufffd", str(text))


@register.filter
def apart(text: object) -> SafeString:
    """Set somebody's words apart, so that their direction stays theirs."""
    return format_html("<bdi>{}</bdi>", visible(text))


@register.filter
def linked(text: object) -> SafeString:
    """Make links of the references in a text; everything else in it is escaped."""
    whole, at = visible(text), 0
    pieces: list[str] = []
    for found in REFERENCE.finditer(whole):
        pieces += [whole[at : found.start()], _link(found)]
        at = found.end()
    return format_html_join("", "{}", ((piece,) for piece in [*pieces, whole[at:]]))


def _link(found: re.Match[str]) -> SafeString:
    address = reverse(ROUTES[found["kind"]], args=[found.group()])
    return format_html('<a class="reference" href="{}">{}</a>', address, found.group())


@register.simple_tag
def icon(name: str) -> SafeString:
    """Draw an icon of our sheet; the word beside it says the same, so it is hidden from readers."""
    return format_html(
        '<svg class="icon" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        static("img/icons.svg"),
        name,
    )


@register.simple_tag
def money(amount_minor: int, currency: str) -> str:
    """Write an amount as it is written everywhere, in the viewer's language."""
    return money_format(Money(amount_minor, currency))


@register.filter
def title_shown(review: Review) -> str:
    """Return what a review asks, with its amount as the viewer writes amounts."""
    return _amount_shown(review, review.title)


@register.filter
def button_shown(review: Review) -> str:
    """Return the words of the button that approves, with the amount alike."""
    return _amount_shown(review, review.button)


def _amount_shown(review: Review, text: str) -> str:
    if review.amount_minor is None or review.currency not in EXPONENTS:
        return text
    return money_in(text, Money(review.amount_minor, review.currency))


@register.simple_tag
def waiting_for(user: User | AnonymousUser) -> int:
    """Count the reviews that wait for this person."""
    return reviews.waiting_for(user) if isinstance(user, User) else 0


@register.simple_tag
def refunds_paused() -> Pause | None:
    """Return the pause of all refunds that holds now, so that nobody asks for one in vain."""
    return refunds_pause()


@dataclass(frozen=True, slots=True)
class ModelInUse:
    """Which model answers."""

    name: str
    offline: bool


@register.simple_tag
def model_in_use() -> ModelInUse:
    """Say which model answers, so that nobody takes the offline one for a language model."""
    return ModelInUse(settings.CHAT_MODEL, settings.CHAT_MODEL.startswith("offline:"))
