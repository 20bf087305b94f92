"""The demo's own keys: made once, kept in the home, so that what they signed outlives a restart."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from config.home import home


def secret_key(name: str = "secret-key") -> str:
    """Return the key kept under this name, or make and keep one; with no writable folder it dies.

    Raises: ImproperlyConfigured when the kept one cannot be read: it is another user's product.
    """
    path = home() / name
    fresh = secrets.token_urlsafe(50)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Exclusive creation: of two first starts one makes the key and the other reads it.
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return _read(path) or fresh
    except OSError:
        return fresh
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(fresh)
    return fresh


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise ImproperlyConfigured(
            f"{path} cannot be read ({error.strerror}); run this as the user whose product it is, "
            "or name a folder of your own in COUNTERSIGN_HOME."
        ) from None
