"""Data of the pages that is neither state nor layout: examples, lengths, reasons, form keys."""

from typing import Final
from uuid import UUID, uuid4

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

# The assistant reads these words, so they are not translated.
EXAMPLES: Final = (
    "find good-card@example.com",
    "charge the open invoice of good-card@example.com",
    "refund 5.00 EUR of the last payment of good-card@example.com because the box was crushed",
    "export payments of last month as CSV",
)

REJECT_SENTENCES: Final = (
    _("The reason is not covered by our refund rules."),
    _("The customer has already been refunded for this."),
    _("Please ask the customer for a photo or a receipt first."),
    _("The amount is too high; please ask again with a lower one."),
    _("This is the wrong payment; please check which one is meant."),
)


def measure_asked(request: HttpRequest) -> bool:
    """Tell whether the message shall go on where it would stop; the service checks the right."""
    return request.POST.get("measure") == "1"


def key_read(request: HttpRequest) -> UUID:
    """Return the key that the page sent along; a broken one is as good as a new one."""
    try:
        return UUID(request.POST.get("client_key", ""))
    except ValueError:
        return uuid4()
