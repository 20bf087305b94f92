"""Fixtures of a module that has the product to itself; a test module imports those it wants.

The database is a copy, kept for the module: the processes outlive the single test, so nothing is
rolled back and each test makes its own people.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.durability.model import HeldModel, held_model
from tests.durability.product import LEASE_SECONDS, Product
from tests.journeys.databases import copied
from tests.rig.servers import Server, redis_own, short_folder
from tests.rig.sessions import database_named, database_of


@pytest.fixture(scope="module")
def db(database_url: str, django_db_blocker: Any) -> Iterator[str]:
    """Copy the empty test database, let the ORM speak to the copy, and return its address.

    The name is that of pytest-django's own, by which the session knows that it needs a database.
    """
    with django_db_blocker.unblock(), copied(database_url, database_of(database_url)) as name:
        yield database_named(database_url, name)


@pytest.fixture(scope="module")
def model() -> Iterator[HeldModel]:
    """Run the model server."""
    with held_model() as model:
        yield model


@pytest.fixture(scope="module")
def broker() -> Iterator[Server]:
    """Run a Redis to be killed."""
    with short_folder() as folder:
        server = redis_own(folder)
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="module")
def variables(db: str, broker: Server, model: HeldModel) -> dict[str, str]:
    """Return what the product's processes are told; a module may say something else."""
    return {
        "DATABASE_URL": db,
        "REDIS_URL": broker.url,
        "RUN_LEASE_SECONDS": str(LEASE_SECONDS),
        **model.variables,
    }


@pytest.fixture(scope="module")
def product(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Run web server, one worker of every queue and beat."""
    with Product(tmp_path_factory.mktemp("product"), variables) as made:
        made.web()
        made.beat()
        made.worker()
        made.ready()
        yield made
