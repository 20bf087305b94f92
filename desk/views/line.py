"""Changing and taking back a message that waits in line, until a worker takes it up."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from agent_core.runs.errors import MessageRefused, MessageTaken
from agent_core.runs.models import Message
from agent_core.runs.services import message_edit, message_remove
from desk.answers import answer_done, answer_refused, wants_data
from desk.reach import message_or_404
from desk.views.api import posted
from desk.views.chat import chat_page
from desk.views.people import person


@posted
def edit(request: HttpRequest, message_id: UUID) -> HttpResponse:
    """Let a waiting message say something else; what was typed is never lost."""
    message = message_or_404(person(request), message_id)
    typed = request.POST.get("text", "")
    try:
        message_edit(message=message, actor=person(request), text=typed)
    except (MessageRefused, MessageTaken) as refusal:
        if not wants_data(request):
            return chat_page(request, message.conversation, typed=typed, error=str(refusal))
        if isinstance(refusal, MessageRefused):
            # The message still waits as it was: its form stays open.
            return answer_refused(request, str(refusal), to=_to(message), status=400)
        return answer_refused(request, str(refusal), to=_to(message), data=_changed(message))
    return answer_done(request, to=_to(message), data=_changed(message))


@posted
def remove(request: HttpRequest, message_id: UUID) -> HttpResponse:
    """Take a waiting message back."""
    message = message_or_404(person(request), message_id)
    try:
        message_remove(message=message, actor=person(request))
    except MessageTaken as refusal:
        return answer_refused(request, str(refusal), to=_to(message), data=_changed(message))
    return answer_done(request, to=_to(message), data=_changed(message))


def _to(message: Message) -> str:
    return reverse("chat", args=[message.conversation_id]) + f"#message-{message.pk}"


def _changed(message: Message) -> dict[str, list[list[str]]]:
    """Name the parts of the page that may look different now."""
    runs = [["run", str(pk)] for pk in message.runs.values_list("pk", flat=True)]
    head = ["head", str(message.conversation_id)]
    return {"refresh": [["text", str(message.pk)], *runs, head]}
