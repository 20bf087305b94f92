"""The sandbox processor keeps its own rules, whoever asks: here plain HTTP."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from payments.sandbox.tokens import earlier_of, earlier_ref, fault_of, method_token
from tests.payments.processor import ACCESS, TIMEOUT_SECONDS, Processor
from tests.rig.threads import at_once

CHARGE = {"amount": "2500", "currency": "eur", "confirm": "true"}


def post(processor: Processor, route: str, form: dict[str, str], key: str = "") -> httpx.Response:
    """Send a form under a key, and wait longer than any line is held."""
    headers = ACCESS | ({"Idempotency-Key": key} if key else {})
    url = f"{processor.url}/v1/{route}"
    return httpx.post(url, data=form, headers=headers, trust_env=False, timeout=TIMEOUT_SECONDS)


def charge(processor: Processor, fault: str = "", key: str = "", **more: str) -> httpx.Response:
    """Charge 25.00 EUR on a method with this fault."""
    form = CHARGE | {"payment_method": method_token("1", fault)} | more
    return post(processor, "payment_intents", form, key)


def refund(processor: Processor, payment: str, amount: int, key: str = "") -> httpx.Response:
    """Refund so much of a payment."""
    return post(processor, "refunds", {"payment_intent": payment, "amount": str(amount)}, key)


def error_code(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the code of a refusal."""
    return answer.status_code, answer.json()["error"].get("code", "")


def test_one_key_pays_once_and_replays_its_answer(processor: Processor) -> None:
    first, second = charge(processor, key="k"), charge(processor, key="k")
    assert first.json() == second.json()
    assert first.json()["status"] == "succeeded"
    assert processor.charged() == [2500]


def test_one_key_with_other_parameters_is_a_conflict_and_pays_nothing(
    processor: Processor,
) -> None:
    charge(processor, key="k")
    other = charge(processor, key="k", amount="2600")
    elsewhere = refund(processor, earlier_ref("a", 100, "EUR"), 100, key="k")
    assert other.json()["error"]["type"] == elsewhere.json()["error"]["type"] == "idempotency_error"
    assert (other.status_code, elsewhere.status_code) == (400, 400)
    assert processor.charged() == [2500]
    assert processor.books()["refunds"] == []


def test_twenty_at_once_under_one_key_pay_once(processor: Processor) -> None:
    """All requests are under way before any is answered; each gets the one stored result."""
    answers = at_once(*[lambda: charge(processor, key="k").json()["id"]] * 20)
    assert (len(answers), len(set(answers))) == (20, 1)
    assert processor.charged() == [2500]


def test_a_refund_above_the_rest_is_refused(processor: Processor) -> None:
    payment = charge(processor).json()["id"]
    assert refund(processor, payment, 2000).status_code == 200
    assert error_code(refund(processor, payment, 501)) == (400, "amount_too_large")
    assert refund(processor, payment, 500).status_code == 200
    assert error_code(refund(processor, payment, 1)) == (400, "charge_already_refunded")
    assert processor.refunded(payment) == [2000, 500]


@pytest.mark.parametrize("amount", ["0", "-5", "5.00", "1e2", "", "99999999999999"])
def test_an_amount_that_is_no_whole_positive_number_is_refused(
    processor: Processor, amount: str
) -> None:
    assert charge(processor, amount=amount).status_code == 400
    assert processor.charged() == []


def test_a_declining_card_is_declined_for_good(processor: Processor) -> None:
    first, second = charge(processor, "declined", "k"), charge(processor, "declined", "k")
    assert error_code(first) == (402, "card_declined")
    assert first.json() == second.json()
    assert processor.charged() == []


def test_a_disputed_payment_is_charged_but_not_refunded(processor: Processor) -> None:
    payment = charge(processor, "disputed").json()["id"]
    assert error_code(refund(processor, payment, 100)) == (400, "charge_disputed")
    assert processor.refunded(payment) == []


def test_a_slow_line_after_the_commit_answers_the_second_try_at_once(processor: Processor) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        charge(processor, "slow_committed", "k")
    assert processor.charged() == [2500]
    assert charge(processor, "slow_committed", "k").json()["status"] == "succeeded"
    assert processor.charged() == [2500]


def test_a_lost_first_try_leaves_nothing_and_the_second_succeeds(processor: Processor) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        charge(processor, "slow_lost", "k")
    assert processor.charged() == []
    assert charge(processor, "slow_lost", "k").json()["status"] == "succeeded"
    assert processor.charged() == [2500]


def test_lists_are_filtered_paged_and_carry_metadata(processor: Processor) -> None:
    payment = earlier_ref("a", 10_000, "EUR")
    for number in range(3):
        form = {"payment_intent": payment, "amount": "100", "metadata[intent]": str(number)}
        post(processor, "refunds", form)
    refund(processor, earlier_ref("b", 10_000, "EUR"), 100)

    def page(**more: str) -> dict[str, Any]:
        query = {"payment_intent": payment, "limit": "2"} | more
        url = f"{processor.url}/v1/refunds"
        answer = httpx.get(url, params=query, headers=ACCESS, trust_env=False)
        read: dict[str, Any] = answer.json()
        return read

    first = page()
    assert [row["metadata"]["intent"] for row in first["data"]] == ["2", "1"]
    assert first["has_more"] is True
    second = page(starting_after=first["data"][-1]["id"])
    assert [row["metadata"]["intent"] for row in second["data"]] == ["0"]
    assert second["has_more"] is False


def test_the_books_survive_a_kill(tmp_path: Path) -> None:
    processor = Processor(tmp_path)
    processor.start()
    first = charge(processor, key="k").json()
    processor.kill()
    processor.start()
    assert charge(processor, key="k").json() == first
    assert processor.charged() == [2500]
    assert processor.stop() == 0


def test_without_the_flag_nobody_switches_faults_or_reads_the_books(tmp_path: Path) -> None:
    processor = Processor(tmp_path, control=False)
    processor.start()
    assert httpx.get(f"{processor.url}/control/books", trust_env=False).status_code == 404
    switched = httpx.post(f"{processor.url}/control/clear", data={}, trust_env=False)
    assert switched.status_code == 404
    assert processor.stop() == 0


def test_the_store_itself_refuses_more_back_than_was_paid(processor: Processor) -> None:
    payment = charge(processor).json()["id"]
    raised = pytest.raises(sqlite3.IntegrityError, match="CHECK")
    with closing(sqlite3.connect(processor.folder / "books.sqlite3")) as books, raised:
        books.execute("UPDATE payment_intents SET refunded = 2501 WHERE id = ?", (payment,))


@pytest.mark.parametrize("fault", ["", "slow_committed", "slow_lost", "declined", "disputed"])
def test_a_name_says_how_its_method_behaves(fault: str) -> None:
    unique = uuid4().hex
    assert fault_of(method_token(unique, fault)) == fault
    earlier = earlier_of(earlier_ref(unique, 9899, "JPY", refunded_minor=99, fault=fault))
    assert earlier is not None
    assert (earlier.amount, earlier.currency, earlier.refunded) == (9899, "jpy", 99)
    assert fault_of(earlier.method) == fault
    assert earlier_of("pi_3f") is None


def test_an_earlier_payment_is_entered_when_it_is_first_named(processor: Processor) -> None:
    payment = earlier_ref("a", 1000, "EUR", refunded_minor=400)
    assert error_code(refund(processor, payment, 601)) == (400, "amount_too_large")
    assert refund(processor, payment, 600).status_code == 200
    assert error_code(refund(processor, "pi_unheard_of", 1)) == (404, "resource_missing")
