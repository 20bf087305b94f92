"""Signing in; demo accounts are offered under the demo setting alone."""

from typing import Any

from django.conf import settings
from django.contrib.auth.views import LoginView
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

DEMO_ACCOUNTS = (
    {"name": "agent", "password": "demo", "what": _("support agent: asks")},
    {"name": "lead", "password": "demo", "what": _("team lead: decides")},
    {"name": "admin", "password": "demo", "what": _("administrator: looks after it")},
)


class SignIn(LoginView):
    """The sign-in page."""

    redirect_authenticated_user = True

    def get_context_data(self, **given: Any) -> dict[str, Any]:
        """Add the demo accounts, where there are any."""
        context = super().get_context_data(**given)
        context["accounts"] = DEMO_ACCOUNTS if settings.DEMO else ()
        return context


def person(request: HttpRequest) -> Any:
    """Return the signed-in user; every view that calls this needs a sign-in."""
    return request.user
