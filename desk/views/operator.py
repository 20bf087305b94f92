"""The operators' page, and what can be done there; for everybody else it is not found."""

import logging
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from agent_core.runs.errors import NotFound, RunRefused
from agent_core.runs.models import Run
from agent_core.runs.operating import run_push
from agent_core.runs.services import run_requeue
from desk.operating import operates, operator_page
from desk.views.people import person
from payments.errors import PauseRefused
from payments.services import refunds_go_on, refunds_stop
from payments.services_pause import PAUSE_REASON_LIMIT, paused_before, resumed_before

log = logging.getLogger("desk")


@never_cache
@login_required
@require_safe
def operator(request: HttpRequest) -> HttpResponse:
    """Show how queues, workers and runs stand."""
    return _page(request, _operator(request))


@login_required
@require_POST
def push(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Send a run that stands still on its way again."""
    actor = _operator(request)
    try:
        pushed = run_push(run_id=run_id, actor=actor)
    except NotFound:
        raise Http404 from None
    if pushed:
        messages.success(request, _("Sent on its way again; a worker takes it when one is free."))
    else:
        messages.info(
            request, _("This request does not stand still any more. Nothing was changed.")
        )
    return _back()


@login_required
@require_POST
def requeue(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Let a new run go on where one was set aside."""
    actor = _operator(request)
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise Http404
    try:
        again = run_requeue(run=run, actor=actor)
    except NotFound:
        raise Http404 from None
    except RunRefused as refusal:
        messages.error(request, str(refusal))
    else:
        said = _("The request goes on as a new run: {run}").format(run=again.pk)
        messages.success(request, said)
    return _back()


@login_required
@require_POST
def refunds(request: HttpRequest) -> HttpResponse:
    """Pause all refunds, or end the pause that the page showed."""
    actor = _operator(request)
    reason, change = request.POST.get("reason", ""), request.POST.get("do")
    shown = _id_of(request.POST.get("pause", ""))
    try:
        if change == "pause":
            before = paused_before(refunds_stop(actor=actor, reason=reason), actor, reason)
            messages.warning(request, before or _("Refunds are paused."))
        elif change == "resume" and shown is not None:
            ended = refunds_go_on(actor=actor, reason=reason, pause_id=shown)
            before = resumed_before(ended, actor, reason)
            messages.success(request, before or _("Refunds go on."))
        else:
            raise BadRequest
    except PauseRefused as refusal:
        return _page(request, actor, typed=reason, error=str(refusal))
    return _back()


def _operator(request: HttpRequest) -> User:
    """Return who operates.

    Raises: Http404 for everybody else, as for an address that does not exist.
    """
    viewer: User = person(request)
    if not operates(viewer):
        log.warning("scope.denied", extra={"page": "operator", "actor": viewer.pk})
        raise Http404
    return viewer


def _id_of(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _page(request: HttpRequest, viewer: User, typed: str = "", error: str = "") -> HttpResponse:
    context = {
        "section": "operator",
        "page": operator_page(viewer),
        "typed": typed,
        "error": error,
        "longest": PAUSE_REASON_LIMIT,
    }
    return render(request, "desk/operator.html", context, status=422 if error else 200)


def _back() -> HttpResponse:
    return HttpResponseRedirect(reverse("operator"))
