"""What a review is about, as its own app knows it: reached by kind, through the settings."""

from collections.abc import Mapping
from typing import Protocol, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.module_loading import import_string

from agent_core.policy import ReviewProposal
from reviews.models import Review


class Subject(Protocol):
    """The checks of one kind of review; made anew for each decision, so it reads fresh facts.

    `changed` never has to know whether the reviewer may raise: it says what the proposal would be,
    and reviews compares the amounts.
    """

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Return the proposal with these changes, checked against fresh facts.

        Raises: ChangeRefused with a sentence when the change is none that can be made.
        """
        ...

    def stale(self, review: Review) -> str | None:
        """Say with the fresh figures why this can no longer be approved; None when it can."""
        ...


def subject_of(kind: str) -> Subject | None:
    """Return the checks of a kind; None when nobody registered it, and then nothing can change."""
    path: str | None = settings.REVIEW_SUBJECTS.get(kind)
    return cast("Subject", import_string(path)()) if path else None
