"""The checkpoint saver connects the way Django does: no option of DATABASE_URL is lost."""

import dj_database_url
import psycopg
import pytest
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict

from agent_core.runs import work

URL = "postgresql://desk:a%20word@db.example:5433/desk"
PLAIN = {
    "host": "db.example",
    "port": "5433",
    "user": "desk",
    "password": "a word",
    "dbname": "desk",
}


def told(
    monkeypatch: pytest.MonkeyPatch, url: str, options: dict[str, object]
) -> dict[str, object]:
    settings = dj_database_url.parse(url)
    settings["OPTIONS"] = {**settings.get("OPTIONS", {}), **options}
    monkeypatch.setattr(work, "connection", ConnectionHandler({"default": settings})["default"])
    return dict(conninfo_to_dict(work.conninfo()))


@pytest.mark.parametrize(
    ("query", "options", "more"),
    [
        ("", {}, {}),
        (
            "?sslmode=require",
            {"connect_timeout": 5},
            {"sslmode": "require", "connect_timeout": "5"},
        ),
        (
            "?sslmode=verify-full&sslrootcert=/etc/ssl/our%20ca.pem",
            {},
            {"sslmode": "verify-full", "sslrootcert": "/etc/ssl/our ca.pem"},
        ),
        ("", {"options": "-c search_path=desk,public"}, {"options": "-c search_path=desk,public"}),
        ("?target_session_attrs=read-write", {}, {"target_session_attrs": "read-write"}),
        ("?application_name=desk", {}, {"application_name": "desk"}),
        ("", {"keepalives": 0}, {"keepalives": "0"}),
        ("", {"sslcert": "/c", "sslkey": "/k"}, {"sslcert": "/c", "sslkey": "/k"}),
        ("", {"connect_timeout": None, "sslcert": ""}, {}),
        (
            "",
            {
                "server_side_binding": True,
                "prepare_threshold": 5,
                "isolation_level": 1,
                "assume_role": "x",
                "cursor_factory": psycopg.Cursor,
                "client_encoding": "LATIN1",
                "autocommit": True,
            },
            {},
        ),
    ],
)
def test_every_option_but_djangos_own_reaches_the_saver(
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    options: dict[str, object],
    more: dict[str, object],
) -> None:
    assert told(monkeypatch, URL + query, options) == {**PLAIN, **more}


def test_a_named_service_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = ConnectionHandler(
        {
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": "",
                "OPTIONS": {"service": "desk"},
            }
        }
    )
    monkeypatch.setattr(work, "connection", handler["default"])
    assert conninfo_to_dict(work.conninfo()) == {"service": "desk"}


@pytest.mark.django_db
def test_postgres_hears_of_the_options(monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    options: dict[str, object] = {
        "options": "-c search_path=desk,public",
        "application_name": "countersign saver",
    }
    told(monkeypatch, database_url, options)
    with psycopg.connect(work.conninfo()) as other:
        found = other.execute(
            "SELECT current_setting('search_path'), application_name"
            " FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        ).fetchone()
    assert found == ("desk,public", "countersign saver")
