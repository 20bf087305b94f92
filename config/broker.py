"""The broker's address as Celery writes it."""


def broker_url(address: str) -> str:
    """Return Celery's form of a Redis address; a Unix socket has a scheme of its own there."""
    if not address.startswith("unix://"):
        return address
    path, _, query = address.removeprefix("unix://").partition("?")
    return f"redis+socket://{path}?virtual_host={query.removeprefix('db=') or '0'}"
