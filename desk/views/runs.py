"""One run in full: steps, calls with outcomes, decision by rule, tokens, reviews, attempts."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from desk.reach import run_or_404
from desk.run_page import run_page
from desk.views.people import person


@never_cache
@login_required
@require_safe
def run(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Show one run to its requester, or to people who may see every run of their teams."""
    found = run_or_404(person(request), run_id)
    return render(
        request, "desk/run.html", {"section": "chat", "page": run_page(found, person(request))}
    )
