"""The states of a help article; touches no database."""

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices


class State(TextChoices):
    """Whether the assistant may show the article."""

    DRAFT = "draft", "Draft"
    PUBLISHED = "published", "Published"


TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    State.DRAFT: frozenset({State.PUBLISHED}),
    State.PUBLISHED: frozenset({State.DRAFT}),
}
