"""The demo as `make run` has it: its data, its people, its processor, its model that needs no key.

`pytest tests/journeys --update-golden` writes the golden transcripts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from agent_core.runs import work
from tests.journeys.chat import Chat, person
from tests.journeys.databases import copied, template
from tests.payments.processor import Processor, processor, processor_process
from tests.runs.scripting import ScriptedModel, Step, scripted

__all__ = ["processor", "processor_process"]

STYLES = {"planner": "offline:planner@0", "one-at-a-time": "offline:one-at-a-time@0"}


@pytest.fixture(scope="session")
def samples(database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Load the sample data once for the session; return the name of the database that holds it."""
    with django_db_blocker.unblock(), template(database_url, "samples", samples_load) as name:
        yield name


def samples_load() -> None:
    """Load what `make run` loads on its first start."""
    with override_settings(SAMPLE_LOADERS=["knowledge.services.articles_load"]):
        call_command("sample_data", verbosity=0)


@pytest.fixture
def db(samples: str, database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Give the test a database of its own with the sample data, and no transaction around it."""
    with django_db_blocker.unblock(), copied(database_url, samples):
        yield


@pytest.fixture
def product(processor: Processor, settings: Any, tmp_path: Path) -> Processor:
    """Wire the ledger to the sandbox, files to a folder of the test, the model to no pause."""
    settings.PAYMENT_GATEWAY = "sandbox"
    settings.CHAT_MODEL = STYLES["planner"]
    files = {**settings.STORAGES["default"]["OPTIONS"], "location": tmp_path / "files"}
    settings.STORAGES = {
        **settings.STORAGES,
        "default": {**settings.STORAGES["default"], "OPTIONS": files},
    }
    return processor


@pytest.fixture
def chat(db: None, product: Processor) -> Chat:
    """Return a new conversation of the demo's support agent."""
    return Chat(person("agent"))


@pytest.fixture
def chats(db: None, product: Processor) -> Callable[[str], Chat]:
    """Return a way to open conversations of the demo's people."""
    return lambda username: Chat(person(username))


@pytest.fixture(params=STYLES)
def style(request: pytest.FixtureRequest, product: Processor, settings: Any) -> str:
    """Run the test with both offline models: one plans all at once, one calls one at a time."""
    settings.CHAT_MODEL = STYLES[request.param]
    return str(request.param)


@pytest.fixture
def script(product: Processor, monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedModel]:
    """Let a model play a script on the product's own tools, for what no sane planner does."""

    def play(*steps: Step) -> ScriptedModel:
        model = scripted(steps)
        monkeypatch.setattr(work, "chat_model", lambda *_args, **_options: model)
        return model

    return play
