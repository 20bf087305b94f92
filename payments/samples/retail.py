"""Read the public retail data set into plain records. Pure: no database, no float, no clock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, ClassVar, Final

from agent_core.errors import CountersignError

CURRENCY: Final = "USD"
KINDS: Final = {"credit_card": "card", "paypal": "paypal", "gift_card": "gift_card"}
# The data has no dates. Each order gets one of these days by its own number, for ever the same.
FIRST_DAY: Final = date(2025, 11, 1)
DAYS: Final = 365
# Every fifth customer who waits for an order has one more invoice, still to be paid.
OPEN_EVERY: Final = 5


class RetailUnreadable(CountersignError):
    """The folder does not hold the retail data set."""

    code: ClassVar[str] = "retail.unreadable"


@dataclass(frozen=True, slots=True)
class Method:
    """One saved way to pay."""

    key: str
    kind: str
    brand: str
    last4: str


@dataclass(frozen=True, slots=True)
class Person:
    """One customer with what they may pay with."""

    key: str
    name: str
    email: str
    methods: tuple[Method, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """One order: what was paid for it and what went back, in minor units."""

    number: str
    person: str
    description: str
    state: str
    method: str
    amount_minor: int
    refunds: tuple[tuple[str, int], ...]
    first_price_minor: int
    first_item: str

    @property
    def paid_at(self) -> datetime:
        """Return the moment that belongs to this order's number."""
        digits = int(self.number.removeprefix("W"))
        day = FIRST_DAY + timedelta(days=digits % DAYS)
        return datetime(
            day.year, day.month, day.day, 8 + digits % 11, digits % 60, digits % 59, tzinfo=UTC
        )


@dataclass(frozen=True, slots=True)
class Retail:
    """The whole data set."""

    people: tuple[Person, ...]
    orders: tuple[Order, ...]

    def open_orders(self) -> Iterator[Order]:
        """Yield one pending order each of some customers: those get an open invoice."""
        pending: dict[str, Order] = {}
        for order in self.orders:
            if order.state == "pending":
                pending.setdefault(order.person, order)
        yield from (order for place, order in enumerate(pending.values()) if not place % OPEN_EVERY)


def retail_read(folder: Path) -> Retail:
    """Return the data set that lies in `folder`.

    Raises:
        RetailUnreadable: there is no db.json, or it holds something else; one sentence says what.
    """
    path = folder / "db.json"
    try:
        # Decimal from the text itself: a float would turn 19.99 into 1998 minor units.
        data = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise RetailUnreadable(
            f"There is no readable db.json in {folder}: {error.strerror or 'not readable'}."
        ) from error
    except ValueError as error:
        raise RetailUnreadable(f"The file db.json in {folder} is not valid JSON.") from error
    try:
        people = tuple(_person(entry) for entry in data["users"].values())
        orders = tuple(_order(entry) for entry in data["orders"].values())
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, InvalidOperation) as error:
        raise RetailUnreadable(
            f"The file db.json in {folder} is not the retail data set: it lacks or garbles "
            f"users, orders or their payments."
        ) from error
    _check(people, orders, folder)
    return Retail(people, orders)


def minor(amount: Decimal | int | str) -> int:
    """Return an amount of the data set in minor units, exactly.

    Raises:
        ValueError: it is a float, no number, or has more than two decimals.
    """
    if isinstance(amount, float | bool):
        raise ValueError("An amount must not pass through a float.")
    units = Decimal(amount).scaleb(2)
    if not units.is_finite() or units != units.to_integral_value():
        raise ValueError("An amount has more than two decimals.")
    return int(units)


def _person(entry: Mapping[str, Any]) -> Person:
    methods = tuple(
        Method(
            key=str(method["id"]),
            kind=KINDS[method["source"]],
            brand=str(method.get("brand", "")),
            last4=str(method.get("last_four", "")),
        )
        for method in entry["payment_methods"].values()
    )
    name = f"{entry['name']['first_name']} {entry['name']['last_name']}"
    return Person(str(entry["user_id"]), name, str(entry["email"]), methods)


def _order(entry: Mapping[str, Any]) -> Order:
    history = entry["payment_history"]
    paid = [line for line in history if line["transaction_type"] == "payment"]
    back = [line for line in history if line["transaction_type"] == "refund"]
    if len(paid) != 1 or len(paid) + len(back) != len(history):
        raise ValueError("An order has one payment, and refunds.")
    number = str(entry["order_id"]).removeprefix("#")
    if not number.startswith("W") or not number[1:].isdecimal():
        raise ValueError("An order number is a W and digits.")
    items = entry["items"]
    return Order(
        number=number,
        person=str(entry["user_id"]),
        description=", ".join(str(item["name"]) for item in items)[:200],
        state=str(entry["status"]),
        method=str(paid[0]["payment_method_id"]),
        amount_minor=minor(paid[0]["amount"]),
        refunds=tuple((str(line["payment_method_id"]), minor(line["amount"])) for line in back),
        first_price_minor=minor(items[0]["price"]),
        first_item=str(items[0]["name"]),
    )


def _check(people: tuple[Person, ...], orders: tuple[Order, ...], folder: Path) -> None:
    """Refuse what would leave an order without its customer or way to pay."""
    methods = {person.key: {method.key for method in person.methods} for person in people}
    for order in orders:
        if order.method not in methods.get(order.person, set()):
            raise RetailUnreadable(
                f"The data in {folder} is incomplete: order #{order.number} names a customer or "
                f"a way to pay that is not there."
            )
        if sum(amount for _method, amount in order.refunds) > order.amount_minor:
            raise RetailUnreadable(
                f"The data in {folder} is wrong: more went back for order #{order.number} than "
                f"was paid."
            )
