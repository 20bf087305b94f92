"""The search of the help articles: a hit, nothing, and an index that does not answer."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client

from agent_core.contract import RunContext, outcome_read
from agent_core.policy import Proposal, verdict_of
from knowledge import selectors
from knowledge.errors import ArticleMalformed, SearchUnavailable
from knowledge.models import Article
from knowledge.selectors import article_search
from knowledge.services import ARTICLES, articles_load
from knowledge.states import TRANSITIONS, State
from knowledge.tools import TOOLS, articles_search

CONTEXT = RunContext(
    run_id=uuid4(),
    attempt=1,
    conversation_id=uuid4(),
    requester_id=1,
    requester_name="Ana",
    rights=frozenset({"knowledge.view_article"}),
    team_ids=frozenset(),
)


@pytest.fixture
def articles(db: None) -> None:
    """Load the articles that come with the product."""
    articles_load()


def test_a_dozen_articles_come_with_the_product_and_load_once(db: None) -> None:
    files = list(ARTICLES.glob("*/*.md"))
    assert len(files) >= 12
    assert articles_load() == len(files)
    assert articles_load() == 0
    assert Article.objects.filter(state="published").count() == len(files)


@pytest.mark.parametrize(
    ("question", "slug"),
    [
        ("refund times", "refund-times"),
        ("how long does a refund take", "refund-times"),
        ("How long do refunds take?", "refund-times"),
        ("chargeback", "disputed-payments"),
        ("disputed payments", "disputed-payments"),
        ("why was the card declined", "failed-cards"),
        ("receipt", "receipts"),
        ("export payments", "export-payments"),
        ("change address", "change-address"),
        ("customer charged twice", "double-charge"),
        ("who approves a refund", "reviews"),
        ("chargebak", "disputed-payments"),
        ("gift card balance unicorn", "refund-times"),
        ('"expired card" -bank', "update-card"),
    ],
)
def test_a_question_finds_its_article(articles: None, question: str, slug: str) -> None:
    text, artifact = articles_search(CONTEXT, question=question)
    article = Article.objects.get(slug=slug)
    assert artifact["data"]["article"] == slug
    assert (artifact["reason"], artifact["stop"]) == ("completed", True)
    assert artifact["code"] == "articles.found"
    assert text.startswith(f"{article.title}\n\n{article.body}")


def test_nothing_found_ends_the_turn_with_the_key_and_the_next_step(articles: None) -> None:
    text, artifact = articles_search(CONTEXT, question="  zebra \n parking ")
    assert text == (
        "No help article was found for “zebra parking”. Try other words, for example “refund "
        "times” or “receipt”, or open a ticket so that a colleague can look into it."
    )
    assert (artifact["reason"], artifact["stop"]) == ("completed", True)
    assert artifact["code"] == "articles.none"


@pytest.mark.parametrize(
    "question",
    ["quantum refund llama", "the", "'); DROP TABLE x; --", "a & | ! (b", "\\", "refund -refund"],
)
def test_odd_questions_find_nothing_and_break_nothing(articles: None, question: str) -> None:
    _, artifact = articles_search(CONTEXT, question=question)
    assert (artifact["reason"], artifact["code"]) == ("completed", "articles.none")


@pytest.mark.parametrize("question", ["", " \n ", "\x00", "x" * 301, None, 7, ["refund"]])
def test_what_is_no_question_is_asked_again(articles: None, question: Any) -> None:
    text, artifact = articles_search(CONTEXT, question=question)
    assert text == "Say in a few words what to look for in the help articles."
    assert (artifact["reason"], artifact["code"]) == ("transient", "articles.invalid")


def test_drafts_are_not_found_and_edits_are_found_at_once(articles: None) -> None:
    Article.objects.filter(slug="receipts").update(body="The word is xylophone.")
    assert [article.slug for article in article_search("xylophones")] == ["receipts"]
    Article.objects.filter(slug="receipts").update(state="draft")
    assert article_search("xylophones") == []


def test_the_title_weighs_more_than_the_text(db: None) -> None:
    Article.objects.create(slug="a", title="Other", body="lamp lamp", state="published")
    Article.objects.create(slug="b", title="Lamp", body="other", state="published")
    assert [article.slug for article in article_search("lamp")] == ["b", "a"]


def test_another_language_is_better_than_nothing(articles: None) -> None:
    assert article_search("refund times", language="de")[0].slug == "refund-times"
    Article.objects.create(
        slug="x", language="de", title="Refund", body="Deutsch", state="published"
    )
    assert [article.slug for article in article_search("refund", language="de")] == ["x"]


def test_a_search_that_takes_too_long_is_transient_and_the_limit_ends_with_it(
    articles: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(text: str, language: str) -> list[Article]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")
        return []

    monkeypatch.setattr(selectors, "SEARCH_MILLISECONDS", 50)
    with monkeypatch.context() as patch:
        patch.setattr(selectors, "_hits", slow)
        text, artifact = articles_search(CONTEXT, question="refund")
    assert text == "The help articles cannot be searched at the moment. Nothing was changed."
    assert (artifact["reason"], artifact["code"]) == ("transient", "articles.unavailable")
    with connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("0",)
    assert Article.objects.count() >= 12


def test_a_missing_index_column_is_transient(articles: None) -> None:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE knowledge_article RENAME COLUMN search TO gone")
        with pytest.raises(SearchUnavailable):
            article_search("refund")
        _, artifact = articles_search(CONTEXT, question="refund")
        assert artifact["code"] == "articles.unavailable"
        transaction.set_rollback(True)


@pytest.mark.django_db(transaction=True)
def test_a_lost_database_is_no_slow_index() -> None:
    """The connection is cut from the other side while it searches; the error passes."""

    def cut(text: str, language: str) -> list[Article]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selectors, "_hits", cut)
        with pytest.raises(DatabaseError):
            articles_search(CONTEXT, question="refund")
    connection.close()


def test_loading_renews_what_nobody_edited_and_leaves_the_rest(db: None, tmp_path: Path) -> None:
    folder = tmp_path / "en"
    folder.mkdir()
    for name in ("ours", "theirs"):
        (folder / f"{name}.md").write_text("# Old\n\nold text\n", "utf-8")
    assert articles_load(tmp_path) == 2
    Article.objects.filter(slug="theirs").update(body="edited")
    for name in ("ours", "theirs"):
        (folder / f"{name}.md").write_text("# New\n\nnew text\n", "utf-8")
    assert articles_load(tmp_path) == 1
    texts = set(Article.objects.values_list("slug", "title", "body"))
    assert texts == {("ours", "New", "new text"), ("theirs", "Old", "edited")}


@pytest.mark.parametrize("text", ["no title\n\ntext", "# \n\ntext", "# Title\n\n \n", ""])
def test_a_malformed_file_loads_nothing(db: None, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "en"
    folder.mkdir()
    (folder / "a.md").write_text("# Good\n\ntext\n", "utf-8")
    (folder / "b.md").write_text(text, "utf-8")
    with pytest.raises(ArticleMalformed, match=r"b\.md needs a title line and a text\."):
        articles_load(tmp_path)
    assert Article.objects.count() == 0


def test_the_right_allows_and_its_lack_blocks() -> None:
    (tool,) = TOOLS
    asked: dict[str, Any] = {"tool": tool.name, "arguments": {}, "customer_id": None}
    allowed = Proposal(rights=frozenset({"knowledge.view_article"}), **asked)
    assert verdict_of(tool.policies, allowed, {}).kind == "allow"
    verdict = verdict_of(tool.policies, Proposal(rights=frozenset(), **asked), {})
    assert (verdict.kind, verdict.rule) == ("block", "right.missing")
    assert verdict.text == "Your role does not read the help articles. Nothing was searched."


def test_the_artifact_is_one_the_program_reads(articles: None) -> None:
    outcome = outcome_read(articles_search(CONTEXT, question="receipt")[1])
    assert outcome is not None
    assert (outcome.reason, outcome.stop) == ("completed", True)


def test_an_article_has_a_title_and_a_text_and_one_row_a_language(articles: None) -> None:
    with pytest.raises(IntegrityError, match="article_has_text"), transaction.atomic():
        Article.objects.create(slug="x", title="", body="b")
    with pytest.raises(IntegrityError, match="article_slug_language"), transaction.atomic():
        Article.objects.create(slug="receipts", title="a", body="b")
    assert State.values == ["draft", "published"]
    assert set(TRANSITIONS) == set(State)


def test_script_in_an_article_is_text_in_the_administration(articles: None) -> None:
    evil = "<img src=x onerror=alert(1)>"
    Article.objects.filter(slug="receipts").update(title=evil, body=evil)
    user = User.objects.create_user("lea", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_article"))
    client = Client()
    client.force_login(user)
    article = Article.objects.get(slug="receipts")
    for address in ("", f"{article.pk}/change/"):
        shown = client.get(f"/admin/knowledge/article/{address}").content.decode()
        assert evil not in shown
        assert "&lt;img src=x onerror=alert(1)&gt;" in shown
    changed = client.post(f"/admin/knowledge/article/{article.pk}/change/", {"title": "x"})
    assert changed.status_code == 403
