"""Requests that no row can be looked up for: refused before anybody asks the database."""

from __future__ import annotations

from collections.abc import Callable

from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware

NUL = "\0"
"""The one sign that Postgres keeps in no text."""

Answer = Callable[[HttpRequest], HttpResponseBase]


@sync_only_middleware
def without_nul(answer: Answer) -> Answer:
    """Find nothing at an address with a NUL in it, and refuse a question with one."""

    def look(request: HttpRequest) -> HttpResponseBase:
        if NUL in request.path:
            raise Http404
        if any(NUL in each for pair in request.GET.lists() for each in (pair[0], *pair[1])):
            raise BadRequest
        return answer(request)

    return look
