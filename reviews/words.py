"""The sentences that people read about a review: who decided and when, how much time is left."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from reviews.models import Review
from reviews.states import State


def person_name(user: User | None) -> str:
    """Return the name by which people know somebody."""
    return (user.get_full_name() or user.get_username()) if user else _("Nobody")


def moment(at: datetime) -> str:
    """Write a time with its zone, so that nobody has to guess whose clock it is."""
    local = timezone.localtime(at)
    return _("%(day)s at %(time)s") % {
        "day": date_format(local, "j F Y"),
        "time": date_format(local, "H:i T"),
    }


def state_sentence(review: Review) -> str:
    """Say who decided the review, and when; or that it waits."""
    if review.state == State.PENDING or review.decided_at is None:
        return _("This is waiting for a decision.")
    facts = {"who": person_name(review.decided_by), "when": moment(review.decided_at)}
    if review.state == State.APPROVED and review.changes:
        return _("%(who)s approved this with changes on %(when)s.") % facts
    if review.state == State.APPROVED:
        return _("%(who)s approved this on %(when)s.") % facts
    if review.state == State.REJECTED:
        return _("%(who)s rejected this on %(when)s.") % facts
    if review.state == State.WITHDRAWN:
        return _("%(who)s withdrew this on %(when)s.") % facts
    return _("This expired on %(when)s and nothing was done.") % facts


def time_left(review: Review, now: datetime | None = None) -> str:
    """Say how long the review still waits; empty once it is decided."""
    if review.state != State.PENDING:
        return ""
    left = review.expires_at - (now or timezone.now())
    if left <= timedelta(0):
        return _("time is up")
    if left < timedelta(minutes=1):
        return _("less than a minute left")
    days, hours, minutes = _parted(left)
    if days:
        return ngettext("%(days)d day %(hours)d h left", "%(days)d days %(hours)d h left", days) % {
            "days": days,
            "hours": hours,
        }
    if hours:
        return _("%(hours)d h %(minutes)d min left") % {"hours": hours, "minutes": minutes}
    return _("%(minutes)d min left") % {"minutes": minutes}


def age(review: Review, now: datetime | None = None) -> str:
    """Say how long ago the review was asked for."""
    days, hours, minutes = _parted((now or timezone.now()) - review.created_at)
    if days:
        return ngettext("%(days)d day", "%(days)d days", days) % {"days": days}
    if hours:
        return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": minutes}
    return _("%(minutes)d min") % {"minutes": minutes}


def _parted(span: timedelta) -> tuple[int, int, int]:
    """Part a span into days, hours and minutes."""
    days, rest = divmod(max(0, int(span.total_seconds() // 60)), 24 * 60)
    return days, *divmod(rest, 60)
