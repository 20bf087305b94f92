"""What is no order never becomes an effect, and a plain order still does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_core.chat_models.requests import needs_read
from tests.core.fake_desk import EFFECTS, Desk, texts_of

STATEMENT = """Maria Lopez, good-card@example.com, CUS-M1.
Open invoices:
- INV-2067, 50.00 EUR, due 2026-12-01, Spring order
Payments:
- PAY-10071, 30.00 EUR, 2026-11-05, Visa ending in 4242, 30.00 EUR left to refund"""
TEXTS = texts_of(STATEMENT)


def effects_of(words: str, desk: Desk | None = None) -> list[tuple[str, dict[str, str]]]:
    """Return the calls with an effect that the planner makes for a message."""
    batches = (desk or Desk(TEXTS)).ask(words)
    calls = [call for batch in batches for call in batch if call[0] in EFFECTS]
    return [(tool, {k: v for k, v in given.items() if k != "remaining"}) for tool, given in calls]


NO_ORDER = (
    "nobody should charge INV-2031",
    "wait before you charge INV-2037",
    "refuse to charge INV-2061",
    "hold off, charge INV-2079 next month",
    "charge INV-2019 tomorrow",
    "charge INV-2019 on Monday",
    "charge INV-2019 on 2027-01-01",
    "charge INV-2019 in March",
    "if the customer agrees charge INV-2025",
    "if the customer agrees, charge INV-2025",
    "If he agrees: find PAY-10071 and refund it",
    "charge INV-2073 but only after the customer confirmed",
    "charge INV-2073, but only after the customer confirmed",
    "charge INV-2073. But only after the customer confirmed.",
    "charge INV-2073 because he agreed, but only if it is not paid",
    "charge INV-2073 because he agreed. Wait, no.",
    "charge INV-2073 because he agreed, no wait",
    "charge INV-2073 because he agreed, if only he had not",
    "would it be ok to charge INV-2049",
    "charge failed for INV-2013",
    "please check why the INV-2043 charge failed",
    "customer complains that you charge INV-2055",
    "bill INV-2085 is wrong",
    "charge INV-2013 failed",
    "INV-2013 charge",
    "charge for INV-2013",
    "charge INV-2013?",
    "you should charge INV-2013",
    "no one may charge INV-2013",
    "charge INV-2013 later",
    "charge INV-2013 and INV-2015 unless they are paid",
    "charge INV-2013, never mind",
    "charge INV-2013\nnever mind",
    "charge INV-2013; don't",
    "charge INV-2013. Do not charge it.",
    "charge INV-2013, which failed",
    "charge PAY-10071",
    "charge the invoice of Maria Lopez tomorrow",
    "charge nobody",
    "charge -50 of INV-2067",
    "charge 20 of INV-2067",
    "a refund for PAY-10071 was refused yesterday",
    "refund for PAY-10071 arrived?",
    "refund for PAY-10071 arrived",
    "refund for PAY-10071",
    "the refund of PAY-10071",
    "the customer wants to know about a refund for PAY-10071",
    "if PAY-10071 is disputed refund it",
    "find PAY-10071 and if it failed refund it",
    "is PAY-10071 disputed? refund it",
    "refund PAY-10071 once the box is back",
    "refund PAY-10071 for the second time unless he paid",
    "refund PAY-10071 because it broke?",
    "refund PAY-10071. Is that ok?",
    "refund PAY-10071 twice",
    "Maria Lopez's refund",
    "I refund PAY-10071 every week",
    "someone said refund PAY-10071",
    "wait, open a ticket about rain",
    "nobody should open a ticket about rain",
    "open a ticket tomorrow about rain",
    "open a ticket if he agrees",
    "open a ticket on Monday",
    "if he agrees, refund PAY-10071 and open a ticket about rain",
    "export payments of last month tomorrow",
    "never export payments of last month",
    "wait before you export payments of last month",
    "did someone export payments of last month",
)
UNREAD = (
    "refund -5.00 of PAY-10071",
    "refund - 5.00 of PAY-10071",
    "refund five euros of PAY-10071",
    "refund 5k of PAY-10071",
    "refund .50 of PAY-10071",
    "refund ½ of PAY-10071",
    "refund 1/2 of PAY-10071",
    "refund two hundred of PAY-10071",
    "refund 5 PLN of PAY-10071",
    "refund 5 CAD of PAY-10071",
    "refund CA$5 of PAY-10071",
    "refund US$5 of PAY-10071",
    "refund 5 kr of PAY-10071",
    "refund ₹5 of PAY-10071",
    "refund 5 cents of PAY-10071",
    "refund USD 5 EUR of PAY-10071",
    "refund 1 000 of PAY-10071",
    "refund 1'000 of PAY-10071",
    "refund everything except 5.00 of PAY-10071",
    "refund PAY-10071 minus 5.00",
    "refund PAY-10071 less the 3.00 fee",
    "refund PAY-10071 in full, not 5.00",
    "refund PAY-10071 in full 5.00",
    "refund all but 5.00 of PAY-10071",
    "refund 5.00 each of PAY-10071 and PAY-10072",
    "refund 5.00 of PAY-10071 and PAY-10072",
    "refund 5.00 10.00 of PAY-10071",
    "refund 5-10 of PAY-10071",
    "refund 10 % of PAY-10071",
    "refund half of 10.00 of PAY-10071",
    "refund 2 payments of good-card@example.com",
    "refund PAY-10071 for the amount of 5.00",
    "refund PAY-10071 for the five euros",
    "refund ٥ of PAY-10071",
)


@pytest.mark.parametrize("words", NO_ORDER)
def test_what_is_no_order_has_no_effect_and_is_answered(words: str) -> None:
    desk = Desk(TEXTS)
    assert effects_of(words, desk) == []
    assert desk.answer


@pytest.mark.parametrize("words", UNREAD)
def test_an_amount_that_cannot_be_read_never_becomes_all(words: str) -> None:
    desk = Desk(TEXTS)
    assert effects_of(words, desk) == []
    assert desk.answer.endswith("?") or desk.answer.startswith("Which amount")


FIVE = [("refund_request", {"payment": "PAY-10071", "amount": "5.00"})]
ALL = [("refund_request", {"payment": "PAY-10071"})]
CHARGED = [("charge_invoice", {"invoice": "INV-2067"})]
PLAIN = (
    ("charge INV-2067", CHARGED),
    ("Hi, please charge INV-2067 now, thanks!", CHARGED),
    ("could you please charge INV-2067?", CHARGED),
    ("Will you charge INV-2067", CHARGED),
    ("I want you to charge INV-2067", CHARGED),
    ("I would like to charge INV-2067", CHARGED),
    ("let's charge INV-2067", CHARGED),
    ("go ahead and charge INV-2067", CHARGED),
    ("INV-2067: charge it please", CHARGED),
    ("charge 50.00 of INV-2067", CHARGED),
    ("charge the open invoice of Maria Lopez", CHARGED),
    ("charge the open invoice of good-card@example.com", CHARGED),
    ("refund of 5.00 for PAY-10071 please", FIVE),
    ("a refund of 5.00 for PAY-10071", FIVE),
    ("I need a refund of 5.00 for PAY-10071", FIVE),
    ("refund 5.00 of PAY-10071, then tell the customer", FIVE),
    ("refund PAY-10071 in full", ALL),
    ("refund everything of PAY-10071", ALL),
    ("refund the whole payment PAY-10071 please", ALL),
    ("refund EUR5 of PAY-10071", [(FIVE[0][0], {"payment": "PAY-10071", "amount": "5 EUR"})]),
    ("refund the last payment of good-card@example.com", ALL),
    (
        "refund 5.00 EUR of the last payment of Maria Lopez because the box, not the shoe, tore",
        [
            (
                "refund_request",
                {
                    "payment": "PAY-10071",
                    "amount": "5.00 EUR",
                    "reason": "the box, not the shoe, tore",
                },
            )
        ],
    ),
    (
        "refund PAY-10071 since he never got it",
        [(ALL[0][0], ALL[0][1] | {"reason": "he never got it"})],
    ),
    ("do not charge INV-2067, but refund PAY-10071", ALL),
)


@pytest.mark.parametrize(("words", "calls"), PLAIN, ids=[words for words, _calls in PLAIN])
def test_a_plain_order_is_carried_out(words: str, calls: list[tuple[str, dict[str, str]]]) -> None:
    assert effects_of(words) == calls


ORDERS = (
    "charge INV-2067",
    "refund PAY-10071",
    "refund 5.00 of PAY-10071",
    "please refund the last payment of good-card@example.com",
    "charge the open invoice of Maria Lopez",
    "export payments of last month as CSV",
)
TURNS = (
    "if", "unless", "until", "till", "before", "after", "once", "when", "wait", "hold", "later",
    "tomorrow", "next week", "nobody", "no one", "never", "refuse to", "failed", "refused", "wrong",
    "whether", "why", "only", "except", "minus", "less", "but", "not", "don't", "maybe", "perhaps",
    "no", "stop", "he said", "customers complain that you", "we should", "did you", "is it ok to",
    "instead of", "without", "they", "yesterday", "five", "twice", "half", "0.5", "2 x", "again",
)  # fmt: skip
JOINTS = st.sampled_from((" ", ", ", ": ", ". ", "\n", "; ", " - ", " and ", " but "))
WORDS = st.lists(st.sampled_from(TURNS), min_size=1, max_size=3).map(" ".join)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.sampled_from(ORDERS), WORDS, JOINTS, st.booleans())
def test_such_words_around_an_order_never_let_it_have_an_effect(
    order: str, words: str, joint: str, ahead: bool
) -> None:
    text = f"{words}{joint}{order}" if ahead else f"{order}{joint}{words}"
    assert effects_of(text) == [], text


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.sampled_from(ORDERS),
    st.lists(st.sampled_from(("please", "hi", "thanks", "kindly", "now")), max_size=3).map(
        " ".join
    ),
    st.sampled_from(("", "can you", "could you please", "I want you to", "let's", "go ahead and")),
    st.sampled_from(("", " please", ", thanks", " now", "!", ".")),
)
def test_courtesies_around_an_order_change_nothing(
    order: str, courtesy: str, asked: str, end: str
) -> None:
    assert effects_of(f"{courtesy} {asked} {order}{end}") == effects_of(order) != [], order


@pytest.mark.parametrize(
    "words",
    ["Bitte erstatte 5,00 EUR von PAY-10071", "Guten Tag", "remboursez le paiement PAY-10071",
     "верните деньги PAY-10071"],
)  # fmt: skip
def test_another_language_is_answered_with_what_is_understood(words: str) -> None:
    desk = Desk(TEXTS)
    assert desk.ask(words) == []
    assert desk.answer.startswith("I understand English only")


@pytest.mark.parametrize(
    "words",
    ["refund " * 1_100, "charge INV-1, " * 600, "and refund if " * 600, "a@b.com " * 900,
     "open a ticket about " + "late and wet; " * 600, "refund Maria " * 600, "x. find " * 900],
    ids=lambda words: words[:20],
)  # fmt: skip
def test_a_long_message_is_read_in_no_time(words: str) -> None:
    began = time.process_time()
    needs_read(words)
    assert time.process_time() - began < 0.5


def test_of_more_requests_than_are_read_nothing_is_done_and_no_end_is_lost() -> None:
    many = " and ".join(f"refund PAY-{number}" for number in range(1, 25))
    assert len(effects_of(many)) == 24
    assert effects_of(f"{many} and refund PAY-25 and refund PAY-26 and refund PAY-27") == []
    assert effects_of(f"{many} and find PAY-1 and find PAY-2, if he agrees") == []


def test_a_ticket_takes_the_whole_text_and_not_what_stands_in_quotes() -> None:
    words = 'open a ticket about the "fragile" box that said "open here" and tore'
    ((_name, arguments),) = effects_of(words)
    assert arguments["subject"] == 'The "fragile" box that said "open here" and tore'


def test_a_ticket_that_follows_up_on_a_charge_waits_until_the_customer_is_known() -> None:
    which = "Which customer is meant? An e-mail address or a reference is enough."
    desk = Desk({**TEXTS, "payments_list": which})
    assert effects_of("charge the invoice and open a ticket", desk) == []
    assert desk.answer == which
    made = effects_of("good-card@example.com", desk)
    assert [name for name, _arguments in made] == ["charge_invoice", "ticket_create"]
