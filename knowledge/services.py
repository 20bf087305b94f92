"""Load the help articles that come with the product; what people edited stays theirs."""

import logging
from hashlib import sha256
from pathlib import Path
from typing import Final

from django.db import transaction

from knowledge.errors import ArticleMalformed
from knowledge.models import Article
from knowledge.states import State

log = logging.getLogger("knowledge")

ARTICLES: Final = Path(__file__).parent / "articles"


def articles_load(folder: Path = ARTICLES) -> int:
    """Load each `<language>/<slug>.md`; return how many articles are new or newer.

    Raises: ArticleMalformed when a file has no title line or no text; nothing is loaded then.
    """
    with transaction.atomic():
        changed = sum(_load(path) for path in sorted(folder.glob("*/*.md")))
    if changed:
        log.info("articles.loaded", extra={"changed": changed})
    return changed


def _load(path: Path) -> bool:
    heading, _, rest = path.read_text("utf-8").partition("\n")
    title, body = heading.removeprefix("# ").strip(), rest.strip()
    if not heading.startswith("# ") or not title or not body:
        raise ArticleMalformed(f"{path.name} needs a title line and a text.")
    shipped = {"title": title, "body": body, "shipped_hash": _hash(title, body)}
    row, new = Article.objects.select_for_update().get_or_create(
        slug=path.stem,
        language=path.parent.name,
        defaults={**shipped, "state": State.PUBLISHED},
    )
    if new:
        return True
    edited = _hash(row.title, row.body) != row.shipped_hash
    if edited or row.shipped_hash == shipped["shipped_hash"]:
        return False
    row.title, row.body, row.shipped_hash = shipped.values()
    row.save(update_fields=["title", "body", "shipped_hash", "updated_at"])
    return True


def _hash(title: str, body: str) -> str:
    return sha256(f"{title}\n{body}".encode()).hexdigest()
