"""What the offline model does with the tools: look-ups first, effects together, nothing unasked."""

from __future__ import annotations

import pytest

from tests.core.fake_desk import Desk

MARIA = """Maria Lopez, good-card@example.com, CUS-M1.
Saved ways to pay: Visa ending in 4242 (usual).
Open invoices:
- INV-A1, 25.00 EUR, due 2026-12-01, Spring order
Payments:
- PAY-1, 10.00 EUR, 2026-09-03, Visa ending in 4242, 10.00 EUR left to refund
- PAY-4, 99.00 EUR, 2026-11-20, Visa ending in 4242, failed
- PAY-3, 30.00 EUR, 2026-11-05, Visa ending in 4242, 25.00 EUR left to refund
- PAY-2, 20.00 EUR, 2026-10-04, Visa ending in 4242, 20.00 EUR left to refund"""
TWO_OPEN = MARIA.replace(
    "Payments:", "- INV-B2, 40.00 EUR, due 2027-01-01, Summer order\nPayments:"
)
PAYMENTS = """Maria Lopez, good-card@example.com:
Payments:
- PAY-1, 10.00 EUR, 2026-09-03, Visa ending in 4242, 10.00 EUR left to refund
- PAY-3, 30.00 EUR, 2026-11-05, Visa ending in 4242, 25.00 EUR left to refund
- PAY-2, 20.00 EUR, 2026-10-04, Visa ending in 4242, 20.00 EUR left to refund
Refunds:
- REF-8, 5.00 EUR, 2026-11-09, of PAY-3, succeeded
Open invoices:
- INV-A1, 25.00 EUR, due 2026-12-01, Spring order"""
SEVERAL = """Several customers match “Maria”. Which one is meant?
- Maria Lopez, good-card@example.com, CUS-M1
- Maria Lopes, lopes@example.com, CUS-M2"""
MAIL = "good-card@example.com"


def test_find_looks_up_once_and_answers_with_what_was_found() -> None:
    desk = Desk({"customer_find": MARIA})
    assert desk.ask(f"find {MAIL}") == [[("customer_find", {"key": MAIL})]]
    assert desk.answer == MARIA


def test_what_someone_paid_is_one_look_up_with_the_period_as_it_was_written() -> None:
    desk = Desk({"payments_list": PAYMENTS})
    assert desk.ask(f"what did {MAIL} pay last month?") == [
        [("payments_list", {"customer": MAIL, "period": "last month"})]
    ]
    assert desk.answer == PAYMENTS


def test_a_name_that_fits_two_customers_is_asked_back_and_a_reference_answers() -> None:
    desk = Desk({"customer_find": SEVERAL, "payments_list": PAYMENTS, "refund_request": "Done."})
    assert desk.ask("refund the last payment of Maria") == [[("customer_find", {"key": "Maria"})]]
    assert desk.answer == SEVERAL
    assert desk.ask("CUS-M1", stop_after=["refund_request"]) == [
        [("payments_list", {"customer": "CUS-M1"})],
        [("refund_request", {"payment": "PAY-3"})],
    ]


def test_nobody_found_ends_with_the_tools_words_and_no_action() -> None:
    desk = Desk({"customer_find": "No customer was found for “nobody@example.com”."})
    assert desk.ask("refund the last payment of nobody@example.com") == [
        [("customer_find", {"key": "nobody@example.com"})]
    ]
    assert desk.answer == "No customer was found for “nobody@example.com”."


def test_a_named_invoice_is_charged_at_once() -> None:
    desk = Desk({"charge_invoice": "25.00 EUR was charged for INV-A1."})
    assert desk.ask("charge INV-A1", stop_after=["charge_invoice"]) == [
        [("charge_invoice", {"invoice": "INV-A1"})]
    ]


def test_the_open_invoice_is_read_from_the_look_up() -> None:
    desk = Desk({"customer_find": MARIA, "charge_invoice": "Charged."})
    assert desk.ask(f"charge the open invoice of {MAIL}", stop_after=["charge_invoice"]) == [
        [("customer_find", {"key": MAIL})],
        [("charge_invoice", {"invoice": "INV-A1"})],
    ]


def test_without_a_name_the_conversations_own_customer_is_meant() -> None:
    desk = Desk({"payments_list": PAYMENTS, "charge_invoice": "Charged."})
    assert desk.ask("charge the open invoice", stop_after=["charge_invoice"]) == [
        [("payments_list", {})],
        [("charge_invoice", {"invoice": "INV-A1"})],
    ]
    nobody = "Which customer is meant? An e-mail address or a reference is enough."
    unbound = Desk({"payments_list": nobody})
    assert len(unbound.ask("charge the open invoice")) == 1
    assert unbound.answer == nobody


def test_two_open_invoices_are_asked_back_unless_the_amount_tells() -> None:
    desk = Desk({"customer_find": TWO_OPEN, "charge_invoice": "Charged."})
    assert len(desk.ask(f"charge the open invoice of {MAIL}")) == 1
    assert desk.answer.startswith("Which invoice shall I charge?\n- INV-A1,")
    told = Desk({"customer_find": TWO_OPEN, "charge_invoice": "Charged."})
    assert told.ask(f"charge {MAIL} 40.00", stop_after=["charge_invoice"])[1] == [
        ("charge_invoice", {"invoice": "INV-B2"})
    ]


def test_an_amount_that_is_not_the_open_one_is_not_charged() -> None:
    desk = Desk({"customer_find": MARIA})
    assert desk.ask("charge 10.00 of INV-A1") == [[("customer_find", {"key": "INV-A1"})]]
    assert desk.answer == (
        "I can only charge the whole open amount. Shall I charge this?\n"
        "- INV-A1, 25.00 EUR, due 2026-12-01, Spring order"
    )


def test_a_charge_that_is_being_checked_is_said_in_plain_words() -> None:
    text = (
        "The charge of 25.00 EUR for INV-A1 is being checked with the payment processor. "
        "You get a message here when it is settled."
    )
    desk = Desk({"charge_invoice": text})
    assert len(desk.ask("charge INV-A1")) == 1
    assert desk.answer == text


def test_the_last_payment_is_the_newest_that_succeeded_and_not_the_first_line() -> None:
    desk = Desk({"customer_find": MARIA, "refund_request": "Refunded."})
    words = f"refund 5.00 of the last payment of {MAIL} because it came late"
    assert desk.ask(words, stop_after=["refund_request"]) == [
        [("customer_find", {"key": MAIL})],
        [("refund_request", {"payment": "PAY-3", "amount": "5.00", "reason": "it came late"})],
    ]


def test_the_last_payment_of_the_conversations_customer_is_listed_first() -> None:
    desk = Desk({"customer_find": MARIA, "payments_list": PAYMENTS, "refund_request": "Done."})
    desk.ask(f"find {MAIL}")
    assert desk.ask("refund the last payment", stop_after=["refund_request"]) == [
        [("payments_list", {"customer": "CUS-M1"})],
        [("refund_request", {"payment": "PAY-3"})],
    ]


def test_an_order_stands_for_its_payment() -> None:
    desk = Desk({"refund_request": "Refunded."})
    assert desk.ask("refund 5.00 of order #W1234567", stop_after=["refund_request"]) == [
        [("refund_request", {"payment": "#W1234567", "amount": "5.00"})]
    ]


def test_several_payments_are_asked_back_and_a_bare_reference_answers() -> None:
    desk = Desk({"customer_find": MARIA, "payments_list": PAYMENTS, "refund_request": "Refunded."})
    assert len(desk.ask(f"refund 5.00 to {MAIL}")) == 1
    assert desk.answer.startswith("Which payment shall I refund?\n- PAY-1,")
    assert "PAY-4" not in desk.answer
    assert "REF-8" not in desk.answer
    assert desk.ask("PAY-2", stop_after=["refund_request"]) == [
        [("refund_request", {"payment": "PAY-2", "amount": "5.00"})]
    ]


def test_an_unnamed_part_is_asked_back_and_never_becomes_the_whole() -> None:
    desk = Desk()
    assert desk.ask("refund half of PAY-1") == []
    assert desk.answer.startswith("Which amount")


def test_two_refunds_in_one_message_are_two_calls_in_one_batch() -> None:
    desk = Desk({"refund_request": "Refunded."})
    words = "refund 5.00 of PAY-1 and 500.00 of PAY-2"
    assert desk.ask(words, stop_after=["refund_request"]) == [
        [
            ("refund_request", {"payment": "PAY-1", "amount": "5.00"}),
            ("refund_request", {"payment": "PAY-2", "amount": "500.00"}),
        ]
    ]


def test_charge_and_ticket_go_together_after_the_look_up() -> None:
    desk = Desk({"customer_find": MARIA, "charge_invoice": "Charged.", "ticket_create": "Opened."})
    words = f"charge the invoice of {MAIL} and open a ticket"
    assert desk.ask(words, stop_after=["charge_invoice", "ticket_create"]) == [
        [("customer_find", {"key": MAIL})],
        [
            ("charge_invoice", {"invoice": "INV-A1"}),
            (
                "ticket_create",
                {
                    "subject": f"Follow-up: charge the invoice of {MAIL}",
                    "body": "open a ticket",
                },
            ),
        ],
    ]


def test_one_at_a_time_names_what_remains_and_both_happen() -> None:
    desk = Desk(
        {"customer_find": MARIA, "charge_invoice": "Charged.", "ticket_create": "Opened."},
        style="one-at-a-time",
    )
    words = f"charge the invoice of {MAIL} and open a ticket about the late parcel"
    assert desk.ask(words, stop_after=["charge_invoice", "ticket_create"]) == [
        [("customer_find", {"key": MAIL})],
        [
            (
                "charge_invoice",
                {"invoice": "INV-A1", "remaining": "open a ticket about the late parcel"},
            )
        ],
        [
            (
                "ticket_create",
                {"subject": "The late parcel", "body": "open a ticket about the late parcel"},
            )
        ],
    ]


def test_what_a_look_up_found_is_still_told_after_a_call_that_could_end_the_turn() -> None:
    desk = Desk({"customer_find": MARIA, "ticket_create": "Ticket TCK-1 was opened."})
    words = f"find {MAIL} and open a ticket about her parcel"
    batches = desk.ask(words, stop_after=["ticket_create"])
    assert batches[1][0][1]["remaining"] == f"tell: find {MAIL}"
    assert desk.answer == f"{MARIA}\n\nTicket TCK-1 was opened."


def test_it_means_the_payment_that_was_named_though_others_were_shown_beside_it() -> None:
    desk = Desk({"customer_find": MARIA, "refund_request": "Done."})
    desk.ask("find PAY-2")
    assert desk.ask("refund 2.00 of it", stop_after=["refund_request"]) == [
        [("refund_request", {"payment": "PAY-2", "amount": "2.00"})]
    ]


def test_it_is_asked_back_when_several_payments_were_listed() -> None:
    desk = Desk({"payments_list": PAYMENTS})
    desk.ask(f"show the payments of {MAIL}")
    assert desk.ask("refund it") == []
    assert desk.answer == "Which payment shall I refund: PAY-1, PAY-3, PAY-2?"


def test_a_ticket_for_that_payment_carries_its_reference() -> None:
    desk = Desk({"refund_request": "5.00 EUR of PAY-7 was refunded.", "ticket_create": "Opened."})
    desk.ask("refund PAY-7", stop_after=["refund_request"])
    batches = desk.ask("open a ticket about that payment", stop_after=["ticket_create"])
    assert batches[0][0][1]["payment"] == "PAY-7"
    assert batches[0][0][1]["subject"] == "Payment PAY-7"


def test_an_export_waits_for_no_look_up_and_asks_for_its_period() -> None:
    desk = Desk({"export_payments": "Started."})
    assert desk.ask("export refunds of last month as CSV", stop_after=["export_payments"]) == [
        [("export_payments", {"kind": "refunds", "period": "last month", "format": "csv"})]
    ]
    assert desk.ask("export payments") == []
    assert desk.answer == (
        "For which period shall I export? For example last month, or March 2026."
    )


@pytest.mark.parametrize(
    ("words", "tool"),
    [
        ("refund PAY-1", "refund_request"),
        ("charge INV-1", "charge_invoice"),
        ("open a ticket about rain", "ticket_create"),
        ("how do I sleep?", "articles_search"),
        ("export payments of last month", "export_payments"),
    ],
)
def test_an_effect_that_is_not_offered_is_asked_for_once_and_the_refusal_is_told(
    words: str, tool: str
) -> None:
    """Models name such a tool now and then; the gate refuses it, and its words are the answer."""
    refused = "You do not have the right to do this."
    desk = Desk({tool: refused}, tools=[name for name in Desk().tools if name != tool])
    batches = desk.ask(words)
    assert [name for batch in batches for name, _arguments in batch] == [tool]
    assert desk.answer == refused


def test_a_look_up_that_is_not_offered_is_never_called_either() -> None:
    desk = Desk({}, tools=["refund_request", "payments_list"])
    assert desk.ask(f"refund the last payment of {MAIL}") == []
    assert desk.answer.startswith("I cannot find a customer for you here")


def test_nothing_is_looked_up_for_what_cannot_be_done_anyway() -> None:
    desk = Desk({}, tools=["customer_find", "payments_list"])
    assert desk.ask(f"refund the last payment of {MAIL}") == []
    assert desk.answer == (
        f"I cannot ask for a refund for you here: “refund the last payment of {MAIL}” is not done."
    )


def test_hello_says_what_can_be_done_with_the_offered_tools_only() -> None:
    desk = Desk(tools=["customer_find", "articles_search"])
    assert desk.ask("hello") == []
    assert desk.answer == (
        "Hello. I can find a customer or search the help articles. What shall I do?"
    )


def test_the_status_is_what_was_said_last() -> None:
    desk = Desk({"charge_invoice": "The charge of 25.00 EUR for INV-A1 is being checked."})
    desk.ask("charge INV-A1")
    desk.ask("what is the status?")
    assert desk.answer == "The last I know: The charge of 25.00 EUR for INV-A1 is being checked."
    fresh = Desk()
    fresh.ask("what is the status?")
    assert fresh.answer == "Nothing is under way in this conversation."


def test_an_effect_is_called_once_whatever_it_answered() -> None:
    desk = Desk({"refund_request": "“25,000” can be read in two ways. Write it like 25.00 EUR."})
    assert len(desk.ask("refund 25,000 of PAY-1")) == 1
    assert desk.answer == "“25,000” can be read in two ways. Write it like 25.00 EUR."


def test_a_mixed_batch_is_told_in_full() -> None:
    desk = Desk({"refund_request": {"PAY-1": "PAY-1 done.", "PAY-2": "PAY-2 was refused."}})
    assert len(desk.ask("refund PAY-1 and PAY-2")) == 1
    assert desk.answer == "PAY-1 done.\n\nPAY-2 was refused."
