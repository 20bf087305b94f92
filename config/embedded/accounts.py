"""Which system account runs Postgres: ours, or an unprivileged one when we are root."""

import os
import pwd
import shutil
import stat
import subprocess
from pathlib import Path

# Postgres refuses to run as root. The first account that exists is taken.
CANDIDATES = ("countersign-db", "embedded_postgres", "postgres")


class NoAccount(Exception):
    """Root cannot make or find an unprivileged account for Postgres."""


def server_user() -> int | None:
    """Return the id of the account that shall run Postgres, or None to run it as ourselves.

    Raises: NoAccount when we are root and there is no such account and none can be made.
    """
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return _make_account(CANDIDATES[0])


def _make_account(name: str) -> int:
    useradd = shutil.which("useradd") or shutil.which("adduser")
    if useradd is None:
        return pwd.getpwnam("nobody").pw_uid
    options = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin"]
    if useradd.endswith("adduser"):
        options = ["-S", "-D", "-H", "-s", "/sbin/nologin"]
    done = subprocess.run([useradd, *options, name], check=False, capture_output=True, text=True)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise NoAccount(f"cannot make the account {name}: {done.stderr.strip()}") from None


def open_way(folder: Path) -> list[Path]:
    """Let other accounts pass through the folders above this one; return those that changed.

    Only the right to pass is given, never to list or read.
    """
    changed = []
    for parent in folder.resolve().parents:
        mode = parent.stat().st_mode
        if not mode & stat.S_IXOTH:
            parent.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
            changed.append(parent)
    return changed


def private_dir(folder: Path, user: int | None) -> None:
    """Make a folder that only the given account (or ours) may enter.

    Raises: PermissionError when it exists and belongs to somebody else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid not in {os.geteuid(), user}:
        raise PermissionError(f"{folder} belongs to somebody else")
    folder.chmod(0o700)
    if user is not None:
        os.chown(folder, user, pwd.getpwuid(user).pw_gid)
