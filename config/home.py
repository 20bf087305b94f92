"""Where a running product keeps its files: `var/`, or the folder that COUNTERSIGN_HOME names."""

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

from config import env

BASE_DIR = Path(__file__).resolve().parent.parent

# A Unix socket path holds 104 bytes on macOS and 108 on Linux, the closing zero included.
SOCKET_PATH_LIMIT = 100
POSTGRES_SOCKET = ".s.PGSQL.5432"
REDIS_SOCKET = "redis.sock"


def home() -> Path:
    """Return the folder for data, logs, sockets and the runtime file."""
    named = env.text("COUNTERSIGN_HOME", "")
    return Path(named).resolve() if named else BASE_DIR / "var"


def socket_dir(folder: Path, name: str) -> Path:
    """Return where the server `name` of this home puts its socket.

    A project in a deep folder would exceed the limit, so its sockets lie in a short folder whose
    name is derived from the home.
    """
    near = folder / "run" / name
    if len(os.fsencode(near / POSTGRES_SOCKET)) <= SOCKET_PATH_LIMIT:
        return near
    mark = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    return Path("/tmp") / f"countersign-{os.getuid()}-{mark}" / name  # noqa: S108


def postgres_url(folder: Path, database: str = "countersign") -> str:
    """Return the address of this home's embedded Postgres."""
    place = quote(str(socket_dir(folder, "postgres")), safe="")
    return f"postgresql://postgres@{place}/{database}"


def redis_url(folder: Path) -> str:
    """Return the address of this home's embedded Redis."""
    return f"unix://{socket_dir(folder, 'redis') / REDIS_SOCKET}?db=0"
