"""The model factory: what it builds, how it names it, and what it says when it cannot."""

from __future__ import annotations

import pytest
from langchain_groq import ChatGroq

from agent_core.chat_models import (
    ModelKeyMissing,
    ModelSettingWrong,
    ModelUnknown,
    chat_model,
    model_label,
)
from agent_core.chat_models.offline import OfflineModel


def test_the_offline_planner_is_built_without_a_key() -> None:
    model = chat_model("offline:planner", timeout=5)
    assert isinstance(model, OfflineModel)
    assert (model.style, model.delay) == ("planner", 0.015)


def test_the_pause_between_words_is_part_of_the_name() -> None:
    model = chat_model("offline:one-at-a-time@250", timeout=5)
    assert isinstance(model, OfflineModel)
    assert (model.style, model.delay) == ("one-at-a-time", 0.25)


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        ("offline:planner", "Offline planner (no model configured)"),
        ("offline:planner@0", "Offline planner (no model configured)"),
        (
            "offline:one-at-a-time",
            "Offline planner, one call at a time (no model configured)",
        ),
        ("groq:llama-3.3-70b-versatile", "Groq llama-3.3-70b-versatile"),
    ],
)
def test_people_read_which_model_answers(spec: str, label: str) -> None:
    assert model_label(spec) == label


def test_groq_gets_the_timeout_and_no_retries_of_its_own() -> None:
    model = chat_model("groq:llama-3.3-70b-versatile", timeout=7, api_key="k-1")
    assert isinstance(model, ChatGroq)
    assert (model.request_timeout, model.max_retries, model.temperature) == (7.0, 0, 1e-08)
    assert model.groq_api_key is not None
    assert model.groq_api_key.get_secret_value() == "k-1"


def test_groq_takes_the_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "k-env")
    model = chat_model("groq:m", timeout=7)
    assert isinstance(model, ChatGroq)
    assert model.groq_api_key is not None
    assert model.groq_api_key.get_secret_value() == "k-env"


@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key_is_said_in_a_sentence_that_names_the_setting(
    key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(ModelKeyMissing) as error:
        chat_model("groq:m", timeout=7, api_key=key)
    assert str(error.value) == (
        "The model groq:m needs a key: set GROQ_API_KEY, or use offline:planner."
    )


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            "planner",
            (
                "The chat model is written as provider:model, for example offline:planner. "
                "'planner' is not. Known providers: offline:…, groq:…."
            ),
        ),
        (
            "offline:",
            (
                "The chat model is written as provider:model, for example offline:planner. "
                "'offline:' is not. Known providers: offline:…, groq:…."
            ),
        ),
        (
            "openai:gpt",
            "There is no chat model provider called 'openai'. Known providers: offline:…, groq:….",
        ),
        (
            "offline:oracle",
            (
                "There is no offline model called 'oracle'; "
                "there are offline:planner and offline:one-at-a-time."
            ),
        ),
        (
            "offline:planner@soon",
            "The pause after @ is in whole milliseconds, and 'soon' is not.",
        ),
    ],
)
def test_an_unknown_model_is_refused_in_a_sentence(spec: str, sentence: str) -> None:
    for use in (lambda: chat_model(spec, timeout=5), lambda: model_label(spec)):
        with pytest.raises(ModelUnknown) as error:
            use()
        assert str(error.value) == sentence
        assert isinstance(error.value, ModelSettingWrong)
        assert isinstance(error.value, ValueError)
