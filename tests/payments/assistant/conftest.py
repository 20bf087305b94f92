"""The demo's own cast on fresh records, with the sandbox processor as a process."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from payments.samples.people import ordinary_people
from tests.payments.assistant.stage import Conversation, notices
from tests.payments.processor import Processor


@pytest.fixture(autouse=True)
def wiring(settings: Any) -> None:
    """Leave the host out: no run waits here, and notices are only kept."""
    settings.REVIEW_DECIDED = "tests.payments.assistant.stage.decided"
    settings.CONVERSATION_NOTICE = "tests.payments.assistant.stage.noticed"
    settings.SAMPLE_LOADERS = ()
    notices.clear()


@pytest.fixture
def samples(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Load the sample data, with a few of the hundred ordinary people: it is done for each test."""
    few = [pair for pair in ordinary_people() if pair[0].endswith(("Ek", "さくら"))]
    monkeypatch.setattr("payments.samples.loading.ordinary_people", lambda: few)
    call_command("sample_data", verbosity=0)


@pytest.fixture
def agent(samples: None) -> User:
    """Return the support agent of Team North."""
    return User.objects.get(username="agent")


@pytest.fixture
def lead(samples: None) -> User:
    """Return the lead of Team North."""
    return User.objects.get(username="lead")


@pytest.fixture
def talk(agent: User, processor: Processor) -> Conversation:
    """Return a new conversation of the support agent."""
    return Conversation(agent)
