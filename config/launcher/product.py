"""The order of a start: look, servers, tables, data, processes, and the lines for the person."""

import os
from pathlib import Path
from secrets import token_urlsafe

from config import env, runtime
from config.children import Spec
from config.embedded import accounts, postgres, redis
from config.home import home, postgres_url, redis_url
from config.launcher import parts, preflight
from config.launcher.interrupt import Interrupt
from config.launcher.leftovers import stop_leftovers
from config.launcher.problems import CannotStart
from config.launcher.supervisor import Supervisor, say

SERVER_SECONDS = 60.0
# Six Python processes load at once; on two busy cores that takes a while.
PROCESS_SECONDS = 120.0
PEOPLE = (
    ("agent", "support agent, chats"),
    ("lead", "team lead, reviews"),
    ("admin", "administrator"),
)


def run(interrupt: Interrupt) -> int:
    """Run the product until it is told to stop; return the exit code.

    Raises: CannotStart with a sentence when it cannot start or go on; Stopped when told to.
    """
    folder, wishes = home(), preflight.wishes()
    held = preflight.lock(folder)
    supervisor = Supervisor(folder, interrupt)
    try:
        for name in stop_leftovers(folder):
            say(f"{name}: was left by an earlier start, ended")
        preflight.check_port(wishes.host, wishes.port)
        _start(supervisor, wishes)
        supervisor.watch()
    finally:
        supervisor.stop()
        held.close()
    return 0


def _start(supervisor: Supervisor, wishes: preflight.Wishes) -> None:
    _servers(supervisor, wishes)
    port = preflight.free_port()
    place = f"[{wishes.host}]" if ":" in wishes.host else wishes.host
    supervisor.addresses = runtime.Runtime(
        web_url=f"http://{place}:{wishes.port}",
        database_url=os.environ["DATABASE_URL"],
        redis_url=os.environ["REDIS_URL"],
        sandbox_url=os.environ.get("SANDBOX_URL") or f"http://127.0.0.1:{port}",
    )
    _tables(supervisor)
    if not os.environ.get("SANDBOX_URL"):
        os.environ["SANDBOX_URL"] = supervisor.addresses.sandbox_url
        # Shared by the two for as long as they run; nobody else has to know it.
        if not os.environ.get("STRIPE_WEBHOOK_SECRET"):
            os.environ["STRIPE_WEBHOOK_SECRET"] = f"whsec_{token_urlsafe(32)}"
        (supervisor.folder / "sandbox.ready").unlink(missing_ok=True)
        hook = parts.hook_address(wishes.host, wishes.port)
        processor = parts.processor(supervisor.folder, port, hook)
        supervisor.wait(supervisor.launch(processor), SERVER_SECONDS)
    _processes(supervisor, wishes)
    _greet(supervisor)


def _servers(supervisor: Supervisor, wishes: preflight.Wishes) -> None:
    folder = supervisor.folder
    try:
        if wishes.redis_url:
            preflight.check_redis(wishes.redis_url)
        if wishes.database_url:
            preflight.check_database(wishes.database_url)
        else:
            _embedded(supervisor, postgres.prepare(folder))
            postgres.create_database(folder)
        if not wishes.redis_url:
            _embedded(supervisor, redis.prepare(folder))
    except (postgres.PostgresBroken, redis.RedisBroken, accounts.NoAccount, OSError) as problem:
        raise CannotStart(f"{problem}.") from None
    os.environ["DATABASE_URL"] = wishes.database_url or postgres_url(folder)
    os.environ["REDIS_URL"] = wishes.redis_url or redis_url(folder)


def _embedded(supervisor: Supervisor, spec: Spec) -> None:
    say(f"{spec.name}: starting the embedded server")
    supervisor.wait(supervisor.launch(spec), SERVER_SECONDS)


def _tables(supervisor: Supervisor) -> None:
    say("preparing tables and sample data")
    for arguments in (
        ("migrate", "--no-input"),
        ("checkpoints_setup",),
        ("roles_setup",),
        ("sample_data",),
    ):
        supervisor.once(parts.command(*arguments))


def _processes(supervisor: Supervisor, wishes: preflight.Wishes) -> None:
    say("starting the workers, beat and the web server")
    for stale in supervisor.folder.glob("beat-schedule*"):
        stale.unlink()
    specs = [parts.worker(name, os.environ["REDIS_URL"]) for name in parts.WORKERS]
    specs += [parts.beat(supervisor.folder), parts.web(wishes.host, wishes.port)]
    # All at once, then one after the other: each loads the same libraries from disk.
    for child in [supervisor.launch(spec) for spec in specs]:
        supervisor.wait(child, PROCESS_SECONDS)


def _greet(supervisor: Supervisor) -> None:
    model = env.text("CHAT_MODEL", "offline:planner")
    kind = " (a planner on this machine, no language model)" if model.startswith("offline") else ""
    say(f"ready: {supervisor.addresses.web_url}/")
    for name, role in PEOPLE:
        say(f"  sign in as {name:<6} password demo   {role}")
    say(f"answers come from {model}{kind}")
    say(f"logs: {_short(supervisor.folder / 'log')}   end with Ctrl-C")


def _short(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
