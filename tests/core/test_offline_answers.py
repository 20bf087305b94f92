"""A bare answer completes what was asked; anything else stands alone and has no effect."""

from __future__ import annotations

import pytest

from tests.core.fake_desk import EFFECTS, Call, Desk, texts_of

STATEMENT = """Maria Lopez, good-card@example.com, CUS-M1.
Open invoices:
- INV-A1, 25.00 EUR, due 2026-12-01, Spring order
- INV-B2, 40.00 EUR, due 2027-01-01, Summer order
Payments:
- PAY-3, 30.00 EUR, 2026-11-05, Visa ending in 4242, 25.00 EUR left to refund
- PAY-2, 20.00 EUR, 2026-10-04, Visa ending in 4242, 20.00 EUR left to refund"""
TEXTS = texts_of(STATEMENT)
CHARGE = "charge the invoice of good-card@example.com"
REFUND = "refund 5.00 to good-card@example.com"


def _last_of(*words: str) -> tuple[list[Call], Desk]:
    """Return the effects of the last of these messages; those before it must have none."""
    desk = Desk(TEXTS)
    for text in words:
        batches = desk.ask(text)
        effects = [call for batch in batches for call in batch if call[0] in EFFECTS]
        assert text == words[-1] or effects == []
    return effects, desk


CHARGED = [("charge_invoice", {"invoice": "INV-B2"})]
FIVE = [("refund_request", {"payment": "PAY-2", "amount": "5.00"})]
WHOLE = [("refund_request", {"payment": "PAY-2"})]
ANSWERED = (
    *(
        ((CHARGE, answer), CHARGED)
        for answer in (
            "INV-B2", "yes, INV-B2", "INV-B2 please", "the second one", "second one please", "2nd",
            "the 40.00 one", "40.00 EUR", "the last one",
        )
    ),
    *(
        ((REFUND, answer), FIVE)
        for answer in ("PAY-2", "yes PAY-2", "the second one", "the 20.00 one", "it is PAY-2.")
    ),
    (("refund half of PAY-2", "5.00"), FIVE),
    (("refund five euros of PAY-2", "5.00"), FIVE),
    (("refund half of it", "PAY-2", "5.00"), FIVE),
    (("refund half of it", "5.00 of PAY-2"), FIVE),
    (("find good-card@example.com", "refund the second one"), WHOLE),
    (("find good-card@example.com", "charge the 2nd invoice"), CHARGED),
    (("charge 10.00 of INV-B2", "INV-B2"), CHARGED),
    (("charge 10.00 of INV-B2", "40.00"), CHARGED),
    (
        ("export payments", "last month"),
        [("export_payments", {"kind": "payments", "period": "last month", "format": "csv"})],
    ),
    (
        ("open a ticket", "the late parcel"),
        [("ticket_create", {"subject": "The late parcel", "body": "open a ticket"})],
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "calls"), ANSWERED, ids=["; ".join(each) for each, _c in ANSWERED]
)
def test_a_bare_answer_completes_the_request(words: tuple[str, ...], calls: list[Call]) -> None:
    assert _last_of(*words)[0] == calls


STANDS_ALONE = (
    "show {}",
    "not {}, wait",
    "{}? no!",
    "{} is already paid",
    "{} failed",
    "no",
    "yes",
    "Wait",
    "Nothing",
    "no {}",
    "maybe {}",
    "{} tomorrow",
    "if paid {}",
    "the second one?",
    "not the second one",
    "ticket about {}?",
)


@pytest.mark.parametrize("answer", STANDS_ALONE)
def test_a_text_with_more_than_an_answer_stands_alone(answer: str) -> None:
    assert _last_of(CHARGE, answer.format("INV-B2"))[0] == []
    assert _last_of(REFUND, answer.format("PAY-2"))[0] == []


@pytest.mark.parametrize(
    "words",
    [
        ("sing PAY-2 a song", "PAY-2"),
        ("gibberish", "yes PAY-2"),
        ("maybe refund PAY-2", "yes, PAY-2"),
        ("wait before you charge INV-B2", "INV-B2"),
        ("nobody should refund PAY-2", "5.00"),
    ],
)
def test_what_was_not_understood_is_never_completed(words: tuple[str, ...]) -> None:
    assert _last_of(*words)[0] == []


def test_the_last_of_the_payments_is_asked_back_when_newest_and_last_line_differ() -> None:
    effects, desk = _last_of(REFUND, "the last one")
    assert effects == []
    assert desk.answer.startswith("Which payment shall I refund?")


def test_the_status_names_what_waits_for_approval() -> None:
    pending = "This waits for a person's approval and has not been done."
    desk = Desk({"refund_request": pending, "customer_find": STATEMENT})
    desk.ask("refund PAY-2")
    desk.ask("find good-card@example.com")
    desk.ask("what is the status?")
    assert desk.answer == (
        f"The last I know: {STATEMENT}\nWaiting for a person's approval: “refund PAY-2”."
    )
