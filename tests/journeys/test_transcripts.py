"""Golden transcripts: whole conversations with the offline model, compared line by line.

`pytest tests/journeys --update-golden` writes them anew; read the difference before you commit it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.chat import Chat
from tests.journeys.conftest import STYLES
from tests.journeys.conversations import TALKS
from tests.journeys.golden import FOLDER, Plain, golden_difference, golden_text, written


@pytest.mark.parametrize("name", TALKS)
def test_the_conversation_reads_as_its_golden_file(
    chats: Callable[[str], Chat], settings: Any, request: pytest.FixtureRequest, name: str
) -> None:
    talk = TALKS[name]
    settings.CHAT_MODEL = STYLES[talk.style]
    chat = chats(talk.owner)
    for step in talk.steps:
        step(chat)
    now = golden_text(written(chat))
    if request.config.getoption("--update-golden"):
        (FOLDER / f"{name}.json").write_text(now, "utf-8")
    difference = golden_difference(name, now)
    if difference:
        pytest.fail(f"The conversation “{name}” reads otherwise:\n{difference}", pytrace=False)


def test_every_golden_file_has_its_conversation() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(TALKS)


def test_what_is_volatile_is_replaced_and_nothing_else() -> None:
    plain = Plain()
    text = "PAY-BAJ7A94J, REF-7KX2M9QD, PAY-BAJ7A94J, PAY-QQQQ2222, PAY-10011, INV-1001, 5.00 EUR"
    assert plain.text(text) == ("(PAY 1), (REF 1), (PAY 1), (PAY 2), PAY-10011, INV-1001, 5.00 EUR")
    assert plain.text("due 2026-12-01, due on 2026-12-01") == "due (due date), due on (due date)"
