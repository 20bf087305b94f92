"""What the pages' forms and scripts post: one service each, answered as data or by a redirect."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from uuid import UUID, uuid4

from django.contrib import messages as notices
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from agent_core.runs.errors import MessageRefused, RunRefused, StopModeRefused
from agent_core.runs.errors import NotFound as RunNotFound
from agent_core.runs.models import Conversation
from agent_core.runs.services import (
    conversation_stop_mode,
    message_send,
    run_cancel,
    run_retry,
)
from desk.amounts import field_read
from desk.answers import answer_done, answer_refused, wants_data
from desk.reach import conversation_or_404, own_run_or_404, review_or_404
from desk.reviewing import Refused
from desk.views.people import person
from desk.views.reviews import review_page
from desk.words import key_read, measure_asked
from reviews.errors import AlreadyDecided, Expired, NotFound, ReviewRefused
from reviews.forms import field_of, version_seen
from reviews.models import Review
from reviews.services import review_approve, review_raise, review_reject, review_withdraw
from reviews.states import Channel, Decision

View = Callable[..., HttpResponse]


def posted(view: View) -> View:
    """Take posts of signed-in people only; a script whose session has ended is told so in words."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated and wants_data(request):
            said = _("You have been signed out. What you typed is kept; sign in and send it again.")
            return JsonResponse({"error": said}, status=401)
        return login_required(view)(request, *args, **kwargs)

    return never_cache(require_POST(guarded))


@posted
def messages(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Send a message; the same key sent twice is one message."""
    to = reverse("chat", args=[conversation_id])
    try:
        run = message_send(
            # The service reads it itself, under lock, and finds none that is somebody else's.
            conversation=Conversation(pk=conversation_id),
            sender=person(request),
            text=request.POST.get("text", ""),
            client_key=key_read(request),
            measure=measure_asked(request),
        )
    except RunNotFound:
        raise Http404 from None
    except (MessageRefused, StopModeRefused) as refusal:
        # Told of one's own conversations only: the service has looked at none.
        conversation_or_404(person(request), conversation_id)
        status = 400 if isinstance(refusal, MessageRefused) else 403
        return answer_refused(request, str(refusal), to=to, status=status)
    data = {
        "run": str(run.pk),
        "client_key": str(uuid4()),
        "refresh": [["message", str(run.message_id)], ["run", str(run.pk)]],
    }
    return answer_done(request, to=to, data=data)


@posted
def stop_mode(request: HttpRequest, conversation_id: UUID) -> HttpResponse:
    """Choose how the answers of a conversation end from the next message on."""
    conversation = conversation_or_404(person(request), conversation_id)
    to = reverse("chat", args=[conversation.pk])
    # Nothing chosen is no choice: an empty one means the site's.
    wanted = request.POST.get("stop_mode", "none")
    try:
        conversation_stop_mode(conversation=conversation, actor=person(request), stop_mode=wanted)
    except StopModeRefused as refusal:
        return answer_refused(request, str(refusal), to=to, status=400)
    if not wants_data(request):
        notices.success(request, _("Saved. It holds from the next message on."))
    return answer_done(request, to=to, data={})


@posted
def cancel(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Ask a run to stop at its next safe point."""
    return _steer(request, run_id, run_cancel)


@posted
def retry(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Go on with a run that ended early, without asking the question again."""
    return _steer(request, run_id, run_retry)


def _steer(request: HttpRequest, run_id: UUID, service: Callable[..., Any]) -> HttpResponse:
    run = own_run_or_404(person(request), run_id)
    to = reverse("chat", args=[run.conversation_id])
    data = {"refresh": [["run", str(run.pk)], ["stop", str(run.pk)]]}
    try:
        service(run=run, actor=person(request))
    except RunRefused as refusal:
        return answer_refused(request, str(refusal), to=to, data=data)
    return answer_done(request, to=to, data=data)


@posted
def decision(request: HttpRequest, review_id: UUID) -> HttpResponse:
    """Decide a review; whoever comes second is told who decided and when."""
    review = review_or_404(person(request), review_id)
    from_chat = request.POST.get("channel") == Channel.CHAT
    in_chat = from_chat and review.requested_by_id == person(request).pk
    to = reverse("review", args=[review.pk]) + "#result"
    if in_chat:
        to = reverse("chat", args=[review.conversation_id]) + f"#review-{review.pk}"
    data: dict[str, Any] = {
        "refresh": [["review", str(review.pk)], ["run", str(review.run_id)]],
    }
    try:
        _decide(request, review, Channel.CHAT if from_chat else Channel.DESK)
    except NotFound as refusal:
        # The right has gone while this was on its way.
        raise Http404 from refusal
    except ReviewRefused as refusal:
        # Nothing is typed in the chat; and what is over cannot be sent again: that is news.
        news = in_chat or isinstance(refusal, AlreadyDecided | Expired)
        if not news and not wants_data(request):
            return _page_again(request, review_id, refusal)
        if field := field_of(refusal):
            data["fields"] = {field: str(refusal)}
        return answer_refused(request, str(refusal), to=to, data=data)
    return answer_done(request, to=to, data=data)


def _page_again(request: HttpRequest, review_id: UUID, refusal: ReviewRefused) -> HttpResponse:
    """Show the review as it is now, with the sentence and with what was typed."""
    typed = {name: request.POST[name] for name in request.POST}
    refused = Refused(typed.get("decision", ""), str(refusal), field_of(refusal), typed)
    return review_page(request, review_or_404(person(request), review_id), refused)


def _decide(request: HttpRequest, review: Review, channel: Channel) -> Review:
    form, actor = request.POST, person(request)
    wanted = form.get("decision")
    common: dict[str, Any] = {"review_id": review.pk, "actor": actor, "channel": channel}
    if wanted == Decision.WITHDRAW:
        return review_withdraw(**common)
    common |= {"note": form.get("note", ""), "version": version_seen(form.get("version", ""))}
    if wanted == Decision.APPROVE:
        return review_approve(**common)
    if wanted == Decision.REJECT:
        sentence = form.get("sentence", "").strip() or form.get("ready", "")
        return review_reject(sentence=sentence, **common)
    changes = _changes(form, review)
    if wanted == Decision.CHANGE:
        return review_approve(changes=changes, **common)
    if wanted == Decision.RAISE:
        return review_raise(changes=changes, **common)
    raise ReviewRefused(_("Choose what to decide: approve, change, reject or withdraw."))


def _changes(form: QueryDict, review: Review) -> dict[str, str]:
    """Return the fields in which the form differs from what it was shown with.

    An emptied one differs too: the service refuses it, and nobody approves what they took out.
    """
    written = {
        name: field_read(name, str(form[name]).strip(), review.currency)
        for name in review.fields
        if name in form
    }
    return {
        name: text for name, text in written.items() if text != str(review.fields[name]).strip()
    }
