"""The search over help articles: full text first, then most of the words, then like spelling."""

import logging
import re
from typing import Final

from django.contrib.postgres.search import (
    SearchQuery,
    SearchRank,
    TrigramWordSimilarity,
)
from django.db import DatabaseError, connection, transaction
from django.db.models import Case, F, IntegerField, QuerySet, Value, When

from knowledge.errors import SearchUnavailable
from knowledge.models import SEARCH_CONFIG, Article
from knowledge.states import State

log = logging.getLogger("knowledge")

SEARCH_MILLISECONDS: Final = 2_000
HITS_MOST: Final = 3
WORDS_MOST: Final = 12
ALIKE_ENOUGH: Final = 0.5
ALIKE_LETTERS: Final = 4

# Somebody who quotes or excludes means it; looser matching would override them.
_EXACT: Final = re.compile(r'"|(?:^|\s)-')


def article_search(text: str, *, language: str = "en") -> list[Article]:
    """Return the published articles that answer the text best, the best first.

    Raises: SearchUnavailable when the index does not answer or answers too late.
    """
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                # Until the end of this transaction only, and never longer than a person waits.
                limit = str(SEARCH_MILLISECONDS)
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
            return _hits(text, language)
    except DatabaseError as error:
        # A database that is gone is not a slow index: the run goes on from its checkpoint.
        if _is_lost(error):
            raise
        log.warning("articles.unavailable", exc_info=error)
        raise SearchUnavailable from error


def articles_published(language: str = "en") -> QuerySet[Article]:
    """List the articles that people may read."""
    return Article.objects.filter(state=State.PUBLISHED, language=language)


def _is_lost(error: DatabaseError) -> bool:
    """Tell whether the server went away; then there is no state, or one of these classes."""
    state: str | None = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(("08", "57P"))


def _hits(text: str, language: str) -> list[Article]:
    articles = articles_published(language)
    if not articles.exists():
        # Better an article in another language than none.
        articles = Article.objects.filter(state=State.PUBLISHED)
    exact = _exact(articles, text)
    if exact or _EXACT.search(text):
        return exact
    words = _lexemes(text)
    return _most_words(articles, words) or _alike(articles, words, text)


def _exact(articles: QuerySet[Article], text: str) -> list[Article]:
    query = SearchQuery(text, config=SEARCH_CONFIG, search_type="websearch")
    ranked = articles.filter(search=query).annotate(rank=SearchRank(F("search"), query))
    return list(ranked.order_by("-rank", "title")[:HITS_MOST])


def _most_words(articles: QuerySet[Article], words: list[str]) -> list[Article]:
    """Find what holds at least two thirds of the words that carry meaning."""
    if len(words) < 2:
        return []
    any_of = SearchQuery(words[0], config="simple")
    for word in words[1:]:
        any_of |= SearchQuery(word, config="simple")
    held = sum(
        (
            Case(
                When(search=SearchQuery(word, config="simple"), then=Value(1)),
                default=Value(0),
                output_field=IntegerField(),
            )
            for word in words
        ),
        start=Value(0),
    )
    found = articles.filter(search=any_of).annotate(held=held, rank=SearchRank(F("search"), any_of))
    enough = -(-2 * len(words) // 3)
    return list(found.filter(held__gte=enough).order_by("-held", "-rank", "title")[:HITS_MOST])


def _lexemes(text: str) -> list[str]:
    """Return the stems of the words, without those that every text holds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tsvector_to_array(to_tsvector(%s, %s))", [SEARCH_CONFIG, text])
        (words,) = cursor.fetchone()
    return list(words)[:WORDS_MOST]


def _alike(articles: QuerySet[Article], words: list[str], text: str) -> list[Article]:
    """Find titles spelled like the text, for those who mistype; short words are like anything."""
    if not any(len(word) >= ALIKE_LETTERS for word in words):
        return []
    alike = articles.annotate(alike=TrigramWordSimilarity(text, "title"))
    return list(alike.filter(alike__gte=ALIKE_ENOUGH).order_by("-alike", "title")[:HITS_MOST])
