"""The servers of the test session are real ones."""

import os

import psycopg
import pytest
import redis as redis_client
from django.db import connection


@pytest.mark.django_db
def test_the_orm_and_a_second_connection_reach_the_same_database(database_url: str) -> None:
    with psycopg.connect(database_url) as other:
        row = other.execute("SELECT current_database()").fetchone()
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        assert cursor.fetchone() == row


def test_redis_answers_at_the_named_address(redis_url: str) -> None:
    with redis_client.Redis.from_url(redis_url) as client:
        assert client.ping() is True


def test_another_machine_cannot_be_reached() -> None:
    import socket

    with (
        socket.socket() as outside,
        pytest.raises(Exception, match=r"a test tried to reach 192\.0\.2\.1"),
    ):
        outside.connect(("192.0.2.1", 80))


def test_the_home_of_a_running_product_is_not_used() -> None:
    assert "cs-test-" in os.environ["COUNTERSIGN_HOME"]
