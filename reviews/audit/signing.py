"""Record who signed in, out, or failed to; Django tells these by signals and in no other way."""

from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed

from reviews.audit.services import Actor, Subject, audit_write, person
from reviews.audit.words import Action, ActorKind


def signed_in(sender: Any, user: User, **_more: Any) -> None:
    """Record the beginning of a session."""
    audit_write(Action.SESSION_BEGUN, actor=person(user), subject=_account(user))


def signed_out(sender: Any, user: User | None, **_more: Any) -> None:
    """Record the end of a session that somebody had."""
    if user is not None:
        audit_write(Action.SESSION_ENDED, actor=person(user), subject=_account(user))


def sign_in_failed(sender: Any, credentials: dict[str, Any], **_more: Any) -> None:
    """Record the name that was tried, never what was typed as a password."""
    tried = str(credentials.get("username", ""))[:150]
    audit_write(
        Action.SESSION_REFUSED,
        actor=Actor(ActorKind.UNKNOWN),
        subject=Subject("user", reference=tried),
    )


def _account(user: User) -> Subject:
    return Subject("user", user.pk, user.get_username())


def listen() -> None:
    """Connect the three; a second time changes nothing."""
    user_logged_in.connect(signed_in, dispatch_uid="audit")
    user_logged_out.connect(signed_out, dispatch_uid="audit")
    user_login_failed.connect(sign_in_failed, dispatch_uid="audit")
