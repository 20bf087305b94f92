"""How a form post is answered: data for a script that asked for it, a redirect for a browser."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse


def wants_data(request: HttpRequest) -> bool:
    """Tell whether a script of ours posted the form."""
    return request.headers.get("Accept", "") == "application/json"


def answer_done(request: HttpRequest, *, to: str, data: Mapping[str, Any]) -> HttpResponse:
    """Say that it was done; `to` is where a browser without scripts goes on."""
    if wants_data(request):
        return JsonResponse(dict(data))
    return HttpResponseRedirect(to)


def answer_refused(
    request: HttpRequest,
    sentence: str,
    *,
    to: str,
    status: int = 409,
    data: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Say in one sentence why it was not done; what was typed stays in the page."""
    if wants_data(request):
        return JsonResponse({"error": sentence, **(data or {})}, status=status)
    messages.info(request, sentence)
    return HttpResponseRedirect(to)
