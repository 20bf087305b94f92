"""Conversations: the list with a start form, the chat, and the fragments of a live chat."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import UUID, uuid4

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from agent_core.runs.errors import MessageRefused, StopModeRefused
from agent_core.runs.models import Call, Conversation, Message, Run
from agent_core.runs.selectors import conversations_for, event_latest
from agent_core.runs.services import MESSAGE_LIMIT
from desk.begin import conversation_begin
from desk.endings import endings_of
from desk.reach import conversation_or_404
from desk.reviewing import card_of
from desk.transcript import (
    Entry,
    call_line,
    export_card,
    first_shown,
    message_entries,
    run_of,
    stop_of,
    transcript_of,
    work_of,
)
from desk.views.people import person
from desk.words import EXAMPLES, key_read, measure_asked
from exports.selectors import exports_of_conversation
from reviews.selectors import reviews_of_conversation

LISTED: Final = 50


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def home(request: HttpRequest) -> HttpResponse:
    """List the conversations; a post starts a new one with its first message."""
    typed, error = "", ""
    if request.method == "POST":
        typed = request.POST.get("example") or request.POST.get("text", "")
        try:
            begun = conversation_begin(
                owner=person(request),
                text=typed,
                language=get_language() or "en",
                client_key=key_read(request),
                measure=measure_asked(request),
            )
            return HttpResponseRedirect(reverse("chat", args=[begun]))
        except (MessageRefused, StopModeRefused) as refusal:
            error = str(refusal)
    return render(
        request,
        "desk/conversations.html",
        {
            "section": "chat",
            "conversations": conversations_for(person(request))[:LISTED],
            "examples": EXAMPLES,
            "client_key": uuid4(),
            "longest": MESSAGE_LIMIT,
            "typed": typed,
            "measure": measure_asked(request),
            "error": error,
        },
        status=400 if error else 200,
    )


@never_cache
@login_required
@require_safe
def chat(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Show the latest turns of a conversation as they are now; the stream goes on from here.

    With `before`, a position, it shows the turns that end there; that page does not change.
    """
    return chat_page(request, conversation_or_404(person(request), conversation_id))


def chat_page(
    request: HttpRequest, conversation: Conversation, *, typed: str = "", error: str = ""
) -> HttpResponse:
    """Render a conversation; what was refused stands in the composer again, with the sentence."""
    before = _position(request.GET.get("before", ""))
    first = first_shown(conversation, before)
    # Read before the transcript: what comes in between is sent again, and placing is idempotent.
    after = event_latest(conversation.pk)
    return render(
        request,
        "desk/chat.html",
        {
            "section": "chat",
            "conversation": conversation,
            "current": conversation,
            "conversations": conversations_for(person(request))[:LISTED],
            "entries": transcript_of(conversation, person(request), first=first, before=before),
            "earlier": first,
            "is_latest": before is None,
            "after": after,
            "client_key": uuid4(),
            "longest": MESSAGE_LIMIT,
            "endings": endings_of(conversation),
            "typed": typed,
            "error": error,
        },
        status=409 if error else 200,
    )


def _position(written: str) -> int | None:
    """Read a position from an address; what is none of ours shows the latest."""
    return int(written) if written.isascii() and written.isdecimal() and len(written) < 10 else None


@never_cache
@login_required
@require_safe
def fragment(request: HttpRequest, conversation_id: UUID, kind: str, item_id: UUID) -> HttpResponse:
    """Show one part of a conversation, with the markup that the whole page has for it."""
    conversation = conversation_or_404(person(request), conversation_id)
    make = FRAGMENTS.get(kind)
    if make is None:
        raise Http404
    template, context = make(conversation, item_id, person(request))
    return render(request, template, {"conversation": conversation, **context})


Made = tuple[str, dict[str, object]]


def _message(conversation: Conversation, item_id: UUID, viewer: User) -> Made:
    message = _message_of(conversation, item_id)
    return "desk/_entries.html", {"entries": message_entries(conversation, message, viewer)}


def _text(conversation: Conversation, item_id: UUID, _viewer: User) -> Made:
    return "desk/_message_text.html", {"message": _message_of(conversation, item_id)}


def _message_of(conversation: Conversation, item_id: UUID) -> Message:
    message = Message.objects.filter(conversation=conversation, pk=item_id).first()
    if message is None:
        raise Http404
    return message


def _run(conversation: Conversation, run_id: UUID) -> Run:
    run = run_of(conversation, run_id)
    if run is None:
        raise Http404
    return run


def _work(conversation: Conversation, item_id: UUID, viewer: User) -> Made:
    work = work_of(conversation, _run(conversation, item_id), viewer)
    return "desk/_entries.html", {"entries": [Entry(work=work)]}


def _state(conversation: Conversation, item_id: UUID, viewer: User) -> Made:
    run = _run(conversation, item_id)
    return "desk/_run_state.html", {"run": run, "work": work_of(conversation, run, viewer)}


def _stop(conversation: Conversation, item_id: UUID, _viewer: User) -> Made:
    run = _run(conversation, item_id)
    return "desk/_stop.html", {"run": run, "stop": stop_of(run)}


def _call(conversation: Conversation, item_id: UUID, _viewer: User) -> Made:
    call = Call.objects.filter(run__conversation=conversation, pk=item_id).first()
    if call is None:
        raise Http404
    return "desk/_call.html", {"call": call_line(call)}


def _review(conversation: Conversation, item_id: UUID, viewer: User) -> Made:
    review = reviews_of_conversation(conversation.pk).filter(pk=item_id).first()
    if review is None:
        raise Http404
    return "desk/_review.html", {"card": card_of(review, viewer, fresh=True)}


def _export(conversation: Conversation, item_id: UUID, _viewer: User) -> Made:
    export = exports_of_conversation(conversation.pk).filter(pk=item_id).first()
    if export is None:
        raise Http404
    return "desk/_export.html", {"export": export_card(export)}


def _head(conversation: Conversation, item_id: UUID, _viewer: User) -> Made:
    if item_id != conversation.pk:
        raise Http404
    return "desk/_head.html", {}


FRAGMENTS: Final[Mapping[str, Callable[[Conversation, UUID, User], Made]]] = {
    "message": _message,
    "text": _text,
    "work": _work,
    "run": _state,
    "stop": _stop,
    "call": _call,
    "review": _review,
    "export": _export,
    "head": _head,
}
