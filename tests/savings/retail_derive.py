"""Derive `requests/retail.jsonl` and `retail/db.json` from the public retail data set.

`python -m tests.savings.retail_derive DIR` writes both anew from a folder with `db.json` and
`tasks-train.json`. Every task whose solution writes more than once becomes one message:

| call of the data set | what the message asks |
| --- | --- |
| `cancel_pending_order` | the refund of the order's whole payment |
| `return_delivered_order_items` | the refund of what the items cost |
| `exchange_delivered_order_items`, `modify_pending_order_items` | a ticket about the items |
| `modify_pending_order_address`, `modify_user_address` | a ticket about the address |
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
REQUESTS: Final = HERE / "requests" / "retail.jsonl"
DATABASE: Final = HERE / "retail" / "db.json"
SEVERAL: Final = 2
# The task that stands for all of them in the short form: a refund, then a ticket.
SHORT: Final = "59"

Data = Mapping[str, Any]


def left_out(tasks: Sequence[Data]) -> dict[str, list[str]]:
    """Return the ids of the tasks that are no sequence of writes, by why."""
    return {
        "no write": [task["id"] for task in tasks if not _writes(task)],
        "one write": [task["id"] for task in tasks if len(_writes(task)) == 1],
    }


def derived(data: Data, tasks: Sequence[Data]) -> tuple[str, str]:
    """Return the requests, one a line, and the part of the database that they need."""
    chosen = [task for task in tasks if len(_writes(task)) >= SEVERAL]
    lines = [json.dumps(_request(task, data), ensure_ascii=False) for task in chosen]
    orders = {call["arguments"]["order_id"] for task in chosen for call in _orders(task)}
    return "\n".join(lines) + "\n", _database(data, orders)


def read(folder: Path) -> tuple[Data, list[Data]]:
    """Return the data set's database and tasks; amounts stay as they are written."""
    data = json.loads((folder / "db.json").read_text("utf-8"), parse_float=Decimal)
    tasks = json.loads((folder / "tasks-train.json").read_text("utf-8"))
    return data, tasks


def _writes(task: Data) -> list[Data]:
    return [call for call in task["actions"] if call["write"]]


def _orders(task: Data) -> list[Data]:
    return [call for call in _writes(task) if "order_id" in call["arguments"]]


def _request(task: Data, data: Data) -> dict[str, Any]:
    clauses = [_clause(call, data) for call in _writes(task)]
    refunds = [clause for clause in clauses if clause.startswith("refund")]
    decisions = [{"who": "lead", "does": "approve"} for _refund in refunds]
    return {
        "id": f"retail-{task['id']}",
        "asks": "agent",
        "says": " and ".join(clauses),
        "class": "several_writes",
        "writes": len(clauses),
        **({"decisions": decisions} if decisions else {}),
        "model": "offline:one-at-a-time@0",
        **({"short": True} if task["id"] == SHORT else {}),
        "source": f"tau2-retail, task {task['id']}",
    }


def _clause(call: Data, data: Data) -> str:
    given = call["arguments"]
    number = str(given.get("order_id", ""))
    payment = f"PAY-{number.removeprefix('#')}"
    match call["name"]:
        case "cancel_pending_order":
            return f"refund order {number} because it was {given['reason']}"
        case "return_delivered_order_items":
            return f"refund {_price(given['item_ids'], data['orders'][number])} of order {number}"
        case "exchange_delivered_order_items":
            return f"open a ticket about an exchange of {_items(given, data)} for {payment}"
        case "modify_pending_order_items":
            return f"open a ticket about another variant of {_items(given, data)} for {payment}"
        case "modify_pending_order_address":
            return f"open a ticket about delivery to {_street(given)} for {payment}"
        case "modify_user_address":
            return f"open a ticket about the customer's new address {_street(given)}"
        case other:
            raise ValueError(f"The mapping does not know {other}.")


def _price(items: Sequence[str], order: Data) -> str:
    left = list(order["items"])
    total = Decimal(0)
    for item in items:
        line = next(each for each in left if each["item_id"] == item)
        left.remove(line)
        total += line["price"]
    return f"{total:.2f}"


def _items(given: Data, data: Data) -> str:
    wanted = given["item_ids"]
    if len(wanted) > 1:
        return f"{len(wanted)} items"
    items = data["orders"][given["order_id"]]["items"]
    return f"the {next(each['name'] for each in items if each['item_id'] == wanted[0])}"


def _street(given: Data) -> str:
    return f"{given['address1']}, {given['city']}"


def _database(data: Data, numbers: set[str]) -> str:
    """Return what the product's own import reads, of these orders and their customers."""
    orders = {number: data["orders"][number] for number in sorted(numbers)}
    people = {order["user_id"]: data["users"][order["user_id"]] for order in orders.values()}
    kept = {
        "users": {key: _user(people[key]) for key in sorted(people)},
        "orders": {number: _order(order) for number, order in orders.items()},
    }
    # A decimal is written as text: an amount never passes through a float.
    return json.dumps(kept, indent=1, ensure_ascii=False, default=str) + "\n"


def _user(user: Data) -> Data:
    methods = {
        key: {name: value for name, value in method.items() if name != "balance"}
        for key, method in user["payment_methods"].items()
    }
    return {
        **{name: user[name] for name in ("user_id", "name", "email")},
        "payment_methods": methods,
    }


def _order(order: Data) -> Data:
    items = [{"name": item["name"], "price": item["price"]} for item in order["items"]]
    kept = {name: order[name] for name in ("order_id", "user_id", "status", "payment_history")}
    return {**kept, "items": items}


def main(folder: Path) -> None:
    """Write both files anew."""
    requests, database = derived(*read(folder))
    REQUESTS.write_text(requests, encoding="utf-8")
    DATABASE.write_text(database, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
