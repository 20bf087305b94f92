"""Go through what a processor has, whoever made it; shared by every gateway in Stripe's format.

Unlike a try, a look raises when it got no certain answer: half a list is worse than none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from payments.errors import ProcessorSilent
from payments.gateways.base import Seen, SeenKind
from payments.gateways.bodies import PAGE
from payments.gateways.wire import last_of, seen_of

Page = Callable[[dict[str, str]], tuple[int, Any]]


LISTS: Final[Mapping[SeenKind, str]] = {
    "payment": "payment_intents",
    "refund": "refunds",
    "dispute": "disputes",
}
_CHARGES: Final = ("ch_", "py_")


def list_of(kind: SeenKind, processor_ref: str) -> str:
    """Name where one object lies; payments of long ago are charges."""
    is_charge = kind == "payment" and processor_ref.startswith(_CHARGES)
    return "charges" if is_charge else LISTS[kind]


def listed_seen(
    kind: SeenKind, period: tuple[datetime, datetime], payment_ref: str, page_of: Page
) -> Iterator[Seen]:
    """Yield what was made from one moment up to, without it, another; the newest first.

    Raises:
        ProcessorSilent: a page could not be read.
    """
    query = {
        "limit": str(PAGE),
        "created[gte]": str(int(period[0].timestamp())),
        "created[lte]": str(int(period[1].timestamp()) - 1),
    }
    if payment_ref:
        query["charge" if payment_ref.startswith(_CHARGES) else "payment_intent"] = payment_ref
    while True:
        status, listed = page_of(query)
        rows = listed.get("data") if isinstance(listed, dict) else None
        if status != 200 or not isinstance(rows, list):
            raise ProcessorSilent
        for row in rows:
            seen = seen_of(kind, row) if isinstance(row, dict) else None
            if seen is not None:
                yield seen
        if not listed.get("has_more"):
            return
        last = last_of(rows)
        if not last or last == query.get("starting_after"):
            raise ProcessorSilent  # There is more, and it does not say where.
        query["starting_after"] = last


def one_seen(kind: SeenKind, status: int, body: object) -> Seen | None:
    """Read the answer to a question for one object; None when there is no such object.

    Raises:
        ProcessorSilent: the answer says neither.
    """
    if status == 200 and isinstance(body, Mapping):
        seen = seen_of(kind, body)
        if seen is not None:
            return seen
    elif status == 404 and isinstance(body, Mapping) and _is_missing(body):
        return None
    raise ProcessorSilent


# Of an address that is wrong altogether, the processor would say 404 as well.
_MISSING: Final = "resource_missing"


def _is_missing(body: Mapping[str, Any]) -> bool:
    error = body.get("error")
    return isinstance(error, dict) and error.get("code") == _MISSING
