"""The page of the audit says what the code records, and the code records what the page says."""

import re

import pytest
from django.db.models import TextChoices

from reviews.audit.words import Action, ActorKind, OriginKind
from tests.house.pages import page, table
from tests.house.tree import named, product_modules


@pytest.mark.parametrize(
    ("heading", "words"), [("Actions", Action), ("Actors", ActorKind), ("Origins", OriginKind)]
)
def test_the_page_lists_every_word(heading: str, words: type[TextChoices]) -> None:
    rows = table(page("docs/audit.md"), heading)
    assert rows == [[word.value, str(word.label)] for word in words]


def test_every_action_is_recorded_somewhere() -> None:
    code = "".join(
        path.read_text("utf-8")
        for path in product_modules()
        if named(path) != "reviews/audit/words.py"
    )
    used = set(re.findall(r"\bAction\.([A-Z_]+)", code))
    assert used == set(Action.__members__)
