"""The demo's own cast on fresh records, with the sandbox processor as a process."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

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
def samples(db: None) -> None:
    """Load the sample data."""
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
