"""The compose file: the whole product, each part watched, and no secret in it."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.home import BASE_DIR

SERVICES = {
    "web",
    "worker-turns",
    "worker-quarantine",
    "worker-exports",
    "worker-maintenance",
    "beat",
    "processor",
    "postgres",
    "redis",
    "migrate",
}
SECRETS = ("SECRET_KEY", "AUDIT_KEY", "PASSWORD", "API_KEY", "WEBHOOK_SECRET")


def _compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((BASE_DIR / "docker-compose.yml").read_text("utf-8"))
    return loaded


def test_every_part_of_the_product_has_its_container() -> None:
    assert set(_compose()["services"]) == SERVICES


@pytest.mark.parametrize("name", sorted(SERVICES - {"migrate"}))
def test_every_container_that_stays_has_a_health_check(name: str) -> None:
    assert _compose()["services"][name]["healthcheck"]["test"]


def test_every_queue_has_a_worker() -> None:
    from django.conf import settings

    commands = " ".join(str(part.get("command")) for part in _compose()["services"].values())
    consumed = {queue for found in re.findall(r"-Q (\S+)", commands) for queue in found.split(",")}
    assert consumed == {queue.name for queue in settings.CELERY_TASK_QUEUES}


def test_the_containers_are_the_launchers_workers_and_each_has_one_queue() -> None:
    """Sweeps in a worker of turns would wait behind its slow model calls."""
    from config import health
    from config.launcher import parts

    found = {}
    for name, part in _compose()["services"].items():
        if name.startswith("worker-"):
            told = re.search(r"-n (\w+)@%h -Q (\S+) -P (\w+) -c (\d+) ", part["command"])
            assert told is not None, name
            node, queues, pool, slots = told.groups()
            assert f"worker-{node}" == name
            assert f"-d {node}@$$HOSTNAME" in part["healthcheck"]["test"][1]
            found[node] = (queues, pool, int(slots))
    assert found == parts.WORKERS
    assert sorted(found) == sorted(health.WORKERS)
    assert all(queues == node for node, (queues, _pool, _slots) in found.items())


def test_tables_checkpoints_and_roles_are_made_before_anything_serves() -> None:
    services = _compose()["services"]
    assert re.findall(r"manage\.py (\w+)", services["migrate"]["command"]) == [
        "migrate",
        "checkpoints_setup",
        "roles_setup",
    ]
    for name in SERVICES - {"migrate", "processor", "postgres", "redis"}:
        waits = services[name]["depends_on"]["migrate"]
        assert waits == {"condition": "service_completed_successfully"}, name


def test_no_secret_stands_in_the_file() -> None:
    for service in _compose()["services"].values():
        for name, value in service.get("environment", {}).items():
            if name.endswith(SECRETS):
                assert re.fullmatch(r"\$\{[A-Z_]+:(\?[^}]+|-)\}", value), name
            assert "password" not in re.sub(r"\$\{[^}]*\}", "", str(value)).lower()


def test_only_the_web_server_is_reachable_from_outside() -> None:
    services = _compose()["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["web"]


def _client() -> list[str]:
    for candidate in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(candidate[0]):
            probe = subprocess.run([*candidate, "version"], capture_output=True, check=False)
            if probe.returncode == 0:
                return candidate
    pytest.skip("no compose client on this machine (docker compose or docker-compose)")


def _config(folder: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    client = _client()
    shutil.copy(BASE_DIR / "docker-compose.yml", folder)
    (folder / ".env").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return subprocess.run(
        [*client, "config", "--quiet"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


FILLED = [
    "SECRET_KEY=one",
    "AUDIT_KEY=four",
    "ALLOWED_HOSTS=desk.example",
    "POSTGRES_PASSWORD=two",
    "REDIS_PASSWORD=three",
    "CHAT_MODEL=offline:planner",
]


def test_the_compose_client_accepts_the_file(tmp_path: Path) -> None:
    done = _config(tmp_path, FILLED)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("missing", FILLED, ids=lambda line: str(line).partition("=")[0])
def test_the_compose_client_names_a_missing_value(tmp_path: Path, missing: str) -> None:
    done = _config(tmp_path, [line for line in FILLED if line != missing])
    assert done.returncode != 0
    assert f"set {missing.partition('=')[0]} in .env" in done.stderr


def test_the_example_names_everything_that_is_required() -> None:
    example = (BASE_DIR / ".env.example").read_text("utf-8")
    for line in FILLED:
        assert f"\n{line.partition('=')[0]}=\n" in example
