"""The event stream of one conversation: checks the person, then hands the frames on."""

from functools import partial
from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from agent_core.runs.stream import conversation_stream
from desk.reach import conversation_or_404

SessionStore = import_module(settings.SESSION_ENGINE).SessionStore


@require_GET
def stream(request: HttpRequest, conversation_id: UUID) -> HttpResponseBase:
    """Stream the events after the last one that the browser has seen."""
    user = request.user
    if not isinstance(user, User):
        # No redirect: EventSource would follow it and take the sign-in page for a stream.
        return HttpResponse(status=401)
    conversation = conversation_or_404(user, conversation_id)
    answer = StreamingHttpResponse(
        conversation_stream(
            conversation.pk,
            _last_seen(request),
            partial(_still_open, user.pk, request.session.session_key, conversation_id),
        ),
        content_type="text/event-stream; charset=utf-8",
    )
    # A proxy that compresses would hold the first words back until it has a block of them.
    answer["Cache-Control"] = "no-store, no-transform"
    answer["X-Accel-Buffering"] = "no"
    return answer


def _still_open(user_id: int, session_key: str | None, conversation_id: UUID) -> bool:
    """Tell whether the reader is still signed in and the conversation still theirs."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or not SessionStore().exists(session_key):
        return False
    try:
        conversation_or_404(user, conversation_id)
    except Http404:
        return False
    return True


def _last_seen(request: HttpRequest) -> str | None:
    """Read the last event id: the header of a reconnect is newer than the address of the page."""
    return request.headers.get("Last-Event-ID") or request.GET.get("after") or None
