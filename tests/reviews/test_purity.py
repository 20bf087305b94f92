"""The words of reviews that are stored, and therefore data."""

from reviews.states import Channel, Decision, State
from reviews.tasks import reviews_expire


def test_stored_names_do_not_move() -> None:
    assert State.values == ["pending", "approved", "rejected", "withdrawn", "expired"]
    assert Decision.values == ["approve", "change", "raise", "reject", "withdraw"]
    assert Channel.values == ["chat", "desk", "admin", "cli"]
    assert reviews_expire.name == "reviews.reviews_expire"
