"""Help articles for reading: the list, a search, one article."""

from django.contrib.auth.decorators import login_required, permission_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from knowledge.errors import SearchUnavailable
from knowledge.models import Article
from knowledge.policies import VIEW_ARTICLE
from knowledge.selectors import article_search, articles_published


@login_required
@permission_required(VIEW_ARTICLE, raise_exception=True)
@require_safe
def articles(request: HttpRequest) -> HttpResponse:
    """List the articles, or those that answer what is looked for."""
    wanted = " ".join(request.GET.get("q", "").split())[:300]
    found: list[Article] = []
    error = ""
    try:
        found = article_search(wanted) if wanted else list(articles_published())
    except SearchUnavailable:
        error = _("The help articles cannot be searched at the moment. Try again in a minute.")
    context = {"section": "articles", "articles": found, "wanted": wanted, "error": error}
    return render(request, "desk/articles.html", context)


@login_required
@permission_required(VIEW_ARTICLE, raise_exception=True)
@require_safe
def article(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one article, in the reader's language where there is one."""
    for language in (get_language() or "en", "en"):
        found = articles_published(language).filter(slug=slug).first()
        if found is not None:
            context = {"section": "articles", "article": found}
            return render(request, "desk/article.html", context)
    raise Http404
