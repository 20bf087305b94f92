"""A database of its own for each test: nothing of the test before looks into it."""

import time
from typing import Any

from agent_core.runs.claims import run_claim
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.leases import lease_kept
from agent_core.runs.work import toolset
from tests.journeys.chat import Chat, person
from tests.journeys.databases import copied


def test_the_keeper_of_one_database_judges_no_run_of_the_next(
    db: None, samples: str, database_url: str, settings: Any
) -> None:
    """The first keeper still looks, on its own session, when the next database is there."""
    settings.RUN_LEASE_SECONDS = 2
    assert kept()
    with copied(database_url, samples):
        assert kept()


def kept() -> bool:
    """Keep a claimed run longer than the keeper takes to renew; tell whether it is still ours."""
    sent = Chat(person("agent")).send("hello")
    run = run_claim(sent.pk, quarantined=False)
    assert run is not None
    host = DjangoHost(run, toolset())
    with lease_kept(run, host):
        time.sleep(1.5)
    return not host.lost
