"""The strict readers: what they take, and the sentence with which they refuse the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config import env

NAME = "COUNTERSIGN_TEST_VARIABLE"


@pytest.fixture(autouse=True)
def variables_of_the_test_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.setattr(env, "VARIABLES", {})


def _set(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(NAME, value)


@pytest.mark.parametrize("value", ["", "   "])
def test_an_empty_value_counts_as_unset(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    _set(monkeypatch, value)
    assert env.text(NAME, "kept") == "kept"
    assert env.flag(NAME, True) is True
    assert env.number(NAME, 7) == 7
    assert env.choice(NAME, "a", ("a", "b")) == "a"
    assert env.words(NAME, ("a",)) == ["a"]
    assert env.url(NAME, ("http",), "") == ""
    assert env.amounts(NAME, {"EUR": 1}) == {"EUR": 1}


def test_a_required_variable_that_is_unset_is_named() -> None:
    for read in (
        lambda: env.text(NAME),
        lambda: env.words(NAME),
        lambda: env.url(NAME, ("http",)),
    ):
        with pytest.raises(env.SettingRefused, match=f"{NAME} must be set"):
            read()


def test_a_line_break_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, "one\ntwo")
    with pytest.raises(env.SettingRefused, match="must not contain line breaks"):
        env.text(NAME, "")


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        *((word, True) for word in ("1", "TRUE", "yes", "on")),
        *((word, False) for word in ("0", "False", "no", "off")),
    ],
)
def test_a_flag_has_four_words_each_way(
    monkeypatch: pytest.MonkeyPatch, value: str, meaning: bool
) -> None:
    _set(monkeypatch, value)
    assert env.flag(NAME, not meaning) is meaning


@pytest.mark.parametrize("value", ["2", "ja", "enabled", "-1", "tru"])
def test_any_other_word_is_no_flag(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    _set(monkeypatch, value)
    with pytest.raises(env.SettingRefused, match="must be one of 1, 0, true"):
        env.flag(NAME)


@pytest.mark.parametrize("value", ["1_000", "+5", "1.0", "1e3", "0x10", "٣", "ten", "9" * 16])
def test_only_plain_digits_are_a_number(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    _set(monkeypatch, value)
    with pytest.raises(env.SettingRefused, match="must be a whole number"):
        env.number(NAME, 1)


@given(value=st.integers(-(10**12), 10**12), low=st.integers(-50, 0), high=st.integers(1, 50))
def test_a_number_is_taken_exactly_within_its_bounds(value: int, low: int, high: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(NAME, str(value))
        if low <= value <= high:
            assert env.number(NAME, 0, minimum=low, maximum=high) == value
        else:
            with pytest.raises(env.SettingRefused, match=f"between {low} and {high}"):
                env.number(NAME, 0, minimum=low, maximum=high)


def test_a_choice_outside_the_list_is_told_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, "soft")
    with pytest.raises(env.SettingRefused, match="must be one of hard, never, not 'soft'"):
        env.choice(NAME, "hard", ("hard", "never"))


def test_words_lose_their_blanks_and_may_not_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, "a.example , b.example")
    assert env.words(NAME, ()) == ["a.example", "b.example"]
    _set(monkeypatch, "a.example,,b.example")
    with pytest.raises(env.SettingRefused, match="empty place between its commas"):
        env.words(NAME, ())


@pytest.mark.parametrize(
    "value", ["mysql://u:hidden@h/d", "hidden", "postgresql://", "postgresql://u:hidden@h:x/d"]
)
def test_a_refused_address_is_never_repeated(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    _set(monkeypatch, value)
    with pytest.raises(env.SettingRefused) as refused:
        env.url(NAME, ("postgresql", "postgres"), "")
    assert NAME in str(refused.value)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    ["postgresql://u:p@h:5432/d", "postgresql://postgres@%2Ftmp%2Fx/d", "unix:///tmp/r.sock?db=0"],
)
def test_addresses_of_servers_and_sockets_are_taken(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    _set(monkeypatch, value)
    assert env.url(NAME, ("postgresql", "unix"), "") == value


def test_amounts_replace_only_what_they_name(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, "EUR=7, CHF=9")
    assert env.amounts(NAME, {"EUR": 1, "JPY": 2}) == {"EUR": 7, "JPY": 2, "CHF": 9}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("EUR", "must look like KEY=123"),
        ("EUR=1.5", "must look like KEY=123"),
        ("EUR=-5", "must look like KEY=123"),
        ("EUR=1,EUR=2", "names EUR twice"),
        ("eur=1", "three capital letters"),
    ],
)
def test_malformed_amounts_are_refused(
    monkeypatch: pytest.MonkeyPatch, value: str, sentence: str
) -> None:
    _set(monkeypatch, value)
    with pytest.raises(env.SettingRefused, match=sentence):
        env.amounts(NAME, {"EUR": 1})


def test_a_closed_set_takes_no_new_key(monkeypatch: pytest.MonkeyPatch) -> None:
    _set(monkeypatch, "model_cals=3")
    with pytest.raises(env.SettingRefused, match="knows model_calls, not model_cals"):
        env.amounts(NAME, {"model_calls": 1}, closed=True)
