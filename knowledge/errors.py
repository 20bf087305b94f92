"""Why no article can be searched or loaded."""

from agent_core.errors import CountersignError


class SearchUnavailable(CountersignError):
    """The index did not answer; trying again can help."""

    code = "articles.unavailable"
    retryable = True


class ArticleMalformed(CountersignError):
    """An article file has no title or no text."""

    code = "article.malformed"
