"""The event stream of one conversation: checks the person once, then hands the frames on."""

from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from agent_core.runs.stream import conversation_stream
from desk.reach import conversation_or_404


@require_GET
async def stream(request: HttpRequest, conversation_id: UUID) -> HttpResponseBase:
    """Stream the events after the last one that the browser has seen."""
    user = await request.auser()
    if not isinstance(user, User):
        # No redirect: EventSource would follow it and take the sign-in page for a stream.
        return HttpResponse(status=401)
    conversation = await sync_to_async(conversation_or_404)(user, conversation_id)
    answer = StreamingHttpResponse(
        conversation_stream(conversation.pk, _last_seen(request)),
        content_type="text/event-stream; charset=utf-8",
    )
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


def _last_seen(request: HttpRequest) -> str | None:
    """Read the last event id: the header of a reconnect is newer than the address of the page."""
    return request.headers.get("Last-Event-ID") or request.GET.get("after") or None
