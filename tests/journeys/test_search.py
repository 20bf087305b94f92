"""Search: a hit ends the turn with the article, so does nothing found; a silent index does not."""

import psycopg
from django.db import connection

from agent_core.runs.work import conninfo
from knowledge.models import Article
from tests.journeys.chat import Chat, outcome, stop


def test_a_hit_ends_the_turn_with_the_articles_own_text(chat: Chat, style: str) -> None:
    run = chat.say("how long does a refund take?")
    assert stop(run) == ("completed", 1, 1)
    assert chat.outcomes() == [("articles_search", "articles.found")]
    article = Article.objects.get(slug=outcome(chat.calls()[0])["data"]["article"])
    assert chat.answer().startswith(f"{article.title}\n\n{article.body}")
    assert "5 to 7 working days" in chat.answer()


def test_nothing_found_ends_it_too_and_says_so(chat: Chat, style: str) -> None:
    run = chat.say("search quantum flux capacitors")
    assert stop(run) == ("completed", 1, 1)
    assert chat.outcomes() == [("articles_search", "articles.none")]
    assert chat.answer().startswith("No help article was found for “quantum flux capacitors”.")


def test_an_index_that_does_not_answer_is_told_and_works_again_later(chat: Chat) -> None:
    """Another session locks the articles; the search gives up after its two seconds."""
    with psycopg.connect(conninfo()) as other:
        other.execute("LOCK TABLE knowledge_article IN ACCESS EXCLUSIVE MODE")
        run = chat.say("how long does a refund take?")
        other.rollback()
    assert stop(run) == ("answered", 2, 0)
    (call,) = chat.calls()
    assert (call.state, outcome(call)["reason"]) == ("failed", "transient")
    assert chat.answer() == (
        "The help articles cannot be searched at the moment. Nothing was changed."
    )
    assert stop(chat.say("how long does a refund take?")) == ("completed", 1, 1)


def test_an_index_that_is_gone_is_told_without_a_word_of_the_database(chat: Chat) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE knowledge_article RENAME TO knowledge_article_gone")
    run = chat.say("how long does a refund take?")
    assert stop(run)[0] == "answered"
    assert chat.outcomes() == [("articles_search", "articles.unavailable")]
    assert "knowledge" not in chat.answer()
