"""The assistant's search of the help articles; what it finds, or that it finds nothing, is the
answer.
"""

from typing import Annotated, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from agent_core.contract import Artifact, RunContext, Tool, completed, transient
from knowledge.errors import SearchUnavailable
from knowledge.models import Article
from knowledge.policies import POLICIES, VIEW_ARTICLE
from knowledge.selectors import article_search

Answer = tuple[str, Artifact]

QUESTION_LENGTH: Final = 300
KEY_LENGTH: Final = 80


def articles_search(
    context: RunContext,
    *,
    question: Annotated[str, "What to look for, in the staff member's words."],
) -> Answer:
    """Search the help articles about how payments, refunds, receipts and accounts work."""
    text = _clean(question)
    if not text or len(text) > QUESTION_LENGTH:
        return (
            _("Say in a few words what to look for in the help articles."),
            transient("articles.invalid"),
        )
    try:
        found = article_search(text, language=context.language)
    except SearchUnavailable as error:
        sentence = _("The help articles cannot be searched at the moment. Nothing was changed.")
        return sentence, transient(error.code)
    if not found:
        return _nothing(text), completed("articles.none", stop=True)
    return _article(found), completed(
        "articles.found", stop=True, data={"article": found[0].slug, "found": len(found)}
    )


def _clean(question: object) -> str:
    """Return the question in one line; anything but text is no question."""
    if not isinstance(question, str):
        return ""
    return " ".join("".join(s if s.isprintable() else " " for s in question).split())


def _nothing(text: str) -> str:
    key = text if len(text) <= KEY_LENGTH else f"{text[:KEY_LENGTH].rstrip()}…"
    return _(
        "No help article was found for “{key}”. Try other words, for example “refund times” or "
        "“receipt”, or open a ticket so that a colleague can look into it."
    ).format(key=key)


def _article(found: list[Article]) -> str:
    best, *others = found
    text = f"{best.title}\n\n{best.body}"
    if others:
        titles = "; ".join(article.title for article in others)
        text += "\n\n" + _("See also: {titles}.").format(titles=titles)
    return text


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="articles_search",
        run=articles_search,
        doing=gettext_noop("Searching the help articles"),
        done=gettext_noop("Searched the help articles"),
        right=VIEW_ARTICLE,
        effect=False,
        may_stop=True,
        policies=POLICIES,
    ),
)
