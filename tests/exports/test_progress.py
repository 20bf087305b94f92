"""The bar never goes back, and is full only when the file can be fetched."""

from hypothesis import given
from hypothesis import strategies as st

from exports.progress import progress_percent, progress_rebased, progress_shown

COUNTS = st.integers(0, 10**7)


def test_the_last_row_is_held_back_until_the_file_is_ready() -> None:
    assert progress_shown(999, 1000) == 999
    assert progress_shown(1000, 1000) == 999
    assert progress_shown(0, 0) == 0
    assert progress_percent(999, 1000, ready=False) == 99
    assert progress_percent(1000, 1000, ready=True) == 100
    assert progress_percent(0, 0, ready=True) == 100
    assert progress_percent(5, None, ready=False) == 0


def test_a_second_attempt_that_counts_more_rows_keeps_the_share() -> None:
    assert progress_rebased(60, 100, 200) == 120
    assert progress_rebased(60, 100, 110) == 66


def test_a_second_attempt_that_counts_fewer_rows_keeps_the_number() -> None:
    assert progress_rebased(60, 100, 80) == 60
    assert progress_rebased(60, 100, 50) == 49


@given(COUNTS, COUNTS, COUNTS)
def test_the_bar_never_goes_back_and_never_is_full_early(old: int, done: int, new: int) -> None:
    before = progress_shown(min(done, old), old)
    after = progress_rebased(before, old, new)
    assert 0 <= after <= max(0, new - 1)
    if new > before:
        assert after >= before
        assert after * max(old, 1) >= before * new or after == new - 1
    assert progress_percent(after, new, ready=False) < 100
