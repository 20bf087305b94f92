"""Every place where a process may die in the middle of something has a name of its own."""

from collections import Counter

import pytest

from agent_core import faults
from tests.house.points import installs, marks, marks_in, unmarked
from tests.house.tree import named, product_modules

# Transactions of these modules carry no name, because no turn passes there.
NO_TURN = {
    # By hand, once, when the product is set up; each can be run again.
    "agent_core/runs/management/commands/ask.py",
    "knowledge/services.py",
    "payments/management/commands/sample_data.py",
    "payments/roles.py",
    "payments/samples/rows.py",
    # It deletes what no turn needs any more; what a death leaves, the next tick deletes.
    "agent_core/runs/retention.py",
    # A page that is opened issues it; what a death leaves, the next opening issues.
    "payments/receipts/services.py",
    # They read only: there is nothing to be lost.
    "exports/snapshot.py",
    "knowledge/selectors.py",
    "reviews/audit/verifying.py",
}
# Functions that are always called inside something that has a name.
NESTED = {
    "agent_core/runs/queue.py": ("_sent",),
    "agent_core/runs/services.py": ("review_decided", "event_post"),
    "exports/services.py": ("_inserted",),
}

GOING_OUT = "def work():\n    gateway.send(order)\n"
SENDING = "def work():\n    app.send_task(name)\n"
IN_TWO = (
    "def work():\n    with faults.commit('a.b', transaction.atomic()):\n"
    "        with transaction.atomic():\n            pass\n"
)


def test_every_transaction_gateway_call_and_task_send_of_a_turn_carries_a_name() -> None:
    found = [
        f"{named(path)}:{line}"
        for path in product_modules()
        if named(path) not in NO_TURN
        for line in unmarked(path.read_text("utf-8"), but=NESTED.get(named(path), ()))
    ]
    assert found == []


def test_every_exception_is_still_one() -> None:
    sources = {named(path): path.read_text("utf-8") for path in product_modules()}
    stale = [name for name in NO_TURN if not unmarked(sources[name])]
    for name, functions in NESTED.items():
        for function in functions:
            others = [each for each in functions if each != function]
            stale += [function] * (unmarked(sources[name], but=others) == [])
    assert stale == []


def test_no_two_places_have_the_same_name() -> None:
    counted = Counter(mark.name for mark in marks())
    twice = [f"{mark.name} {mark.where}" for mark in marks() if counted[mark.name] > 1]
    assert twice == []


def test_nothing_in_the_product_gives_the_points_an_action() -> None:
    found = [
        f"{named(path)}:{line}"
        for path in product_modules()
        for line in installs(path.read_text("utf-8"))
        if "faults" in line
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "def work():\n    with transaction.atomic():\n        pass\n",
        "def work():\n    with released(), transaction.atomic(durable=True):\n        pass\n",
        "@transaction.atomic\ndef work():\n    pass\n",
        GOING_OUT,
        SENDING,
    ],
)
def test_a_place_without_a_name_is_caught(source: str) -> None:
    assert len(unmarked(source)) == 1


@pytest.mark.parametrize(
    "source", [IN_TWO, "def work():\n    with faults.around('a.b'):\n        gateway.find(order)\n"]
)
def test_a_named_place_and_what_is_nested_in_it_pass(source: str) -> None:
    assert unmarked(source) == []


def test_a_name_that_is_put_together_is_caught() -> None:
    with pytest.raises(ValueError, match="not written out"):
        list(marks_in("with faults.around(f'a.{b}'):\n    pass\n", "here.py"))


def test_a_name_that_goes_through_a_method_is_read_where_it_is_given() -> None:
    source = (
        "def _write(self, name):\n    with faults.commit(name, transaction.atomic()):\n"
        "        yield\n\ndef began(self):\n    with self._write('call.began'):\n        pass\n"
    )
    assert [mark.points for mark in marks_in(source, "here.py")] == [
        ("call.began:before", "call.began:after")
    ]


def test_a_marked_transaction_is_rolled_back_when_its_act_raises() -> None:
    """An act that raises stands for a process that dies: the body must not be committed."""
    seen: list[str] = []

    class Transaction:
        def __enter__(self) -> None:
            seen.append("begin")

        def __exit__(self, kind: object, *_rest: object) -> None:
            seen.append("commit" if kind is None else "roll back")

    def act(name: str) -> None:
        seen.append(name)
        if name == "a.b:before":
            raise RuntimeError

    faults.install(act)
    try:
        with pytest.raises(RuntimeError), faults.commit("a.b", Transaction()):
            pass
    finally:
        faults.install(None)
    assert seen == ["begin", "a.b:before", "roll back"]
