"""What is masked before a row is written and before the model reads it, and what stays."""

import string
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent_core.redaction import CARD_MASK, SECRET_MASK, redacted

M = CARD_MASK


def luhn(digits: str) -> bool:
    """The textbook's way, for comparison."""
    odd, even = digits[-1::-2], digits[-2::-2]
    return (sum(map(int, odd)) + sum(sum(divmod(int(d) * 2, 10)) for d in even)) % 10 == 0


def check_digit(body: str) -> str:
    return next(digit for digit in string.digits if luhn(body + digit))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4242424242424242", M),
        ("4242 4242 4242 4242", M),
        ("4242 4242 4242 4242 12/27", f"{M} 12/27"),
        ("4242 4242 4242 4242 123", f"{M} 123"),
        ("4242-4242-4242-4242-12/27", f"{M}-12/27"),
        ("4242  4242  4242  4242", M),
        ("4242 - 4242 - 4242 - 4242", M),
        ("4242\u00a04242\u00a04242\u00a04242", M),
        ("4242\u202f4242\u202f4242\u202f4242", M),
        ("4242\u200b4242\u200b4242\u200b4242", M),
        ("4242.4242.4242.4242", M),
        ("4242\u20134242\u20134242\u20134242", M),
        ("4242/4242/4242/4242", M),
        ("4242\n4242\r\n4242\n4242", M),
        ("card4242424242424242", f"card{M}"),
        ("4242424242424242EUR", f"{M}EUR"),
        ("card_4242424242424242_", f"card_{M}_"),
        ("x-4242424242424242-y", f"x-{M}-y"),
        ("4242 4242 4242 4242.50 EUR please", f"{M}.50 EUR please"),
        ("CARD-4242 4242 4242 4242", f"CARD-{M}"),
        ("CARD-42424242 42424242", f"CARD-{M}"),
        ("3782 822463 10005", M),
        ("3056 930902 5904", M),
        ("4222222222222", M),
        ("4 2 4 2 4 2 4 2 4 2 4 2 4 2 4 2", M),
        ("+4242 4242 4242 4242", f"+{M}"),
        ("PAN+378282246310005", f"PAN+{M}"),
        ("no. 1\n2026-11-30 4242424242424242", f"no. 1\n2026-11-30 {M}"),
        (" ".join(["\u0664\u0662\u0664\u0662"] * 4), M),
        ("\uff14\uff12\uff14\uff12" * 4, M),
        ("4242424242424242, 5555 5555 5555 4444", f"{M}, {M}"),
    ],
)
def test_a_card_number_is_masked_in_every_form_that_people_type(text: str, expected: str) -> None:
    assert redacted(f"a {text} b") == f"a {expected} b"


@pytest.mark.parametrize(
    "text",
    [
        "the card ending in 4242",
        "Visa \u2022\u2022\u2022\u2022 4242, 12/27",
        "100.00 200.00 300.00 400.00 500.00 EUR",
        "1.234.567,00 EUR and 2.345.678,00 EUR",
        "1,234,567.00 and 2,345,678.00 USD",
        "from 2026-11-30 to 2026-12-01",
        "2026-11-30 2026-12-01 2026-12-02",
        "30.11.2026 01.12.2026",
        "12/27/2026 12/28/2026",
        "+49 1520 1234562",
        "+49 1520 1234567",
        "+4915201234560 or 0049 1520 1234563",
        "+44 20 7946 0958 and +44 20 7946 0959",
        "PAY-23456789 2026-11-30 50.00",
        "REF-7KX2M9QD of PAY-22334455",
        "4242 4242 4242 4243",
        "tracking 1234567890123456",
        "00340434161094042557",
        "12345678-1234-4123-8123-123456789014",
        "a1234567-8901-4345-8789-012345678901",
        "ticket 17 of 240, 3 pieces",
    ],
)
def test_what_only_looks_a_little_like_a_card_number_stays(text: str) -> None:
    assert redacted(text) == text


def test_amounts_dates_and_phone_numbers_stay_whatever_their_check_digits_say() -> None:
    for number in range(2000):
        amount, day = f"{number * 7}.{number % 100:02}", f"2026-{number % 12 + 1:02}-17"
        for text in (
            f"{amount} {day} {amount} {day}",
            f"PAY-{number:08} {day} {amount}",
            f"+49 1520 {number:07}",
            f"{number:08}-1234-4123-8123-{number:012}",
        ):
            assert redacted(text) == text


def test_a_card_number_inside_a_secret_does_not_save_the_rest_of_it() -> None:
    assert redacted("Bearer abcdefgh-4242424242424242-ijklmnop") == SECRET_MASK


@st.composite
def numbers(draw: st.DrawFn) -> str:
    length = draw(st.integers(12, 18))
    first = draw(st.sampled_from("123456789"))
    body = first + draw(st.text(string.digits, min_size=length - 1, max_size=length - 1))
    return body + check_digit(body)


LAYOUTS = [(size,) * 19 for size in (1, 2, 3, 4, 5, 6, 19)] + [(4, 6, 9), (4, 4, 4, 7), (6, 13)]
SEPARATORS = " \u00a0\u202f\t\n-.\u2013\u2011\u3000"
ALPHABETS = [
    string.digits,
    "".join(map(chr, range(0x660, 0x66A))),
    "".join(map(chr, range(0xFF10, 0xFF1A))),
]


@st.composite
def written(draw: st.DrawFn) -> str:
    """One card number as somebody may write it."""
    number = draw(numbers())
    groups: list[str] = []
    for size in draw(st.sampled_from(LAYOUTS)):
        groups, number = [*groups, number[:size]], number[size:]
        if not number:
            break
    between = draw(st.sampled_from(SEPARATORS)) * draw(st.integers(1, 2))
    digits = str.maketrans(string.digits, draw(st.sampled_from(ALPHABETS)))
    return between.join(groups).translate(digits)


AROUND = st.text() | st.sampled_from(
    ["my card ", "12 ", " 12/27", " 123", "2026-11-30 ", " 5.00 EUR", "-", "PAY-1 ", "no.", " \n1 "]
)


@given(AROUND, written(), AROUND)
def test_every_number_with_a_right_check_digit_is_masked(
    before: str, card: str, after: str
) -> None:
    assume(not before[-1:].isdecimal() and not after[:1].isdecimal())
    assume(before[-1:] != "+")
    clean = redacted(before + card + after)
    assert CARD_MASK in clean
    assert card not in clean
    assert redacted(clean) == clean


@given(st.lists(st.integers(0, 10**12 - 1).map(str) | st.text(string.ascii_lowercase + ":;()€")))
def test_text_without_so_many_digits_is_unchanged(words: list[str]) -> None:
    text = ", ".join(words)
    assert redacted(text) == text


@given(st.text("0123456789 -.+/AB\n"))
def test_what_is_masked_once_is_masked_for_good(text: str) -> None:
    assert redacted(redacted(text)) == redacted(text)


@pytest.mark.parametrize(
    "piece", ["1", "1 ", "12-", "4242 ", "1.", "00", "PA-1 ", "1 - ", "-", "+1"]
)
def test_a_long_text_takes_time_in_step_with_its_length(piece: str) -> None:
    began = time.process_time()
    redacted(piece * 100_000)
    assert time.process_time() - began < 5
