"""How an error is answered: a sentence as data for a script of ours, else a page without queries.

Django calls these in threads whose database connections nobody closes, so none may be opened here.
"""

from django.http import HttpRequest, HttpResponse, HttpResponseServerError, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views import csrf, defaults

from agent_core.errors import reference_new
from desk.answers import wants_data


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what cannot be read."""
    if wants_data(request):
        said = _("The desk could not read this. Reload this page; what you typed is kept.")
        return _said(said, 400)
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what the role does not allow."""
    if wants_data(request):
        return _said(_("Your role does not allow this. Nothing was changed."), 403)
    return defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what does not exist, or is somebody else's."""
    if wants_data(request):
        said = _("This does not exist, or it is not yours to see. What you typed is kept.")
        return _said(said, 404)
    return defaults.page_not_found(request, exception)


def failed(request: HttpRequest) -> HttpResponse:
    """Answer a failure of ours with a reference, which Django's line in the log has, too."""
    reference = reference_new()
    # Django logs the failure with this request when it has the answer: `config.logs` finds it.
    vars(request)["failure_reference"] = reference
    if wants_data(request):
        said = _(
            "Something failed on our side; it has been written down. What you typed is kept. If it "
            "was a payment or a refund, look at its state before you ask again. "
            "Reference: %(reference)s."
        )
        return _said(said % {"reference": reference}, 500)
    return HttpResponseServerError(render_to_string("500.html", {"reference": reference}))


def forgery_refused(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Answer a form whose token is not this session's: nearly always a new sign-in elsewhere."""
    if wants_data(request):
        said = _(
            "You signed in again in another tab. Reload this page; what you typed is kept, and "
            "nothing was sent."
        )
        return _said(said, 403)
    return csrf.csrf_failure(request, reason)


def _said(sentence: str, status: int) -> HttpResponse:
    return JsonResponse({"error": sentence}, status=status)
