"""Pause all refunds, and let them go on: a switch in the database that the ledger reads under lock.

While a pause holds, no refund is written and none is tried for the first time. One that was
written and not tried stays open and goes out when refunds go on; one whose first try has begun may
have been paid, so it is settled all the same. No waiting review is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agent_core import faults
from payments.balances import refunds_pause
from payments.errors import PauseRefused
from payments.locks import pause_lock
from payments.models import Pause
from payments.states import Operation
from reviews.audit.services import Subject, audit_write, person
from reviews.audit.words import Action
from reviews.words import person_name

log = logging.getLogger(__name__)

PAUSE_REFUNDS: Final = "payments.pause_refunds"
PAUSE_REASON_LIMIT: Final = 300

ResultT = TypeVar("ResultT")


def refunds_stop(*, actor: User, reason: str) -> Pause:
    """Pause all refunds; a pause that holds already stays as it is.

    When this returns, no refund is written any more and no first try begins. A try that had begun
    may still reach the processor, and is asked about until it is settled.

    Raises:
        PauseRefused: the person may not, or gave no reason that can be kept.
    """

    def stop(why: str, now: Pause | None) -> Pause:
        if now is not None:
            return now
        made = Pause.objects.create(operation=Operation.REFUND, reason=why, paused_by=actor)
        _recorded(Action.REFUNDS_PAUSED, actor, made, why=why)
        log.warning("refunds.paused", extra={"actor": actor.pk, "pause": str(made.pk)})
        return made

    return _switched(actor, reason, stop)


def refunds_go_on(*, actor: User, reason: str, pause_id: UUID) -> Pause | None:
    """End this pause, so that refunds go on; return it as it was ended first, by whomever.

    None when there never was such a pause.

    Raises:
        PauseRefused: the person may not, gave no reason that can be kept, or another pause holds.
    """

    def go_on(why: str, now: Pause | None) -> Pause | None:
        if now is None:
            return Pause.objects.select_related("resumed_by").filter(pk=pause_id).first()
        if now.pk != pause_id:
            # Begun for a reason that whoever asks has not read.
            raise PauseRefused(_another_holds(now))
        now.resumed_by, now.resumed_at, now.resumed_reason = actor, timezone.now(), why
        now.save(update_fields=["resumed_by", "resumed_at", "resumed_reason"])
        _recorded(Action.REFUNDS_RESUMED, actor, now, why=why)
        log.warning("refunds.resumed", extra={"actor": actor.pk, "pause": str(now.pk)})
        return now

    return _switched(actor, reason, go_on)


def paused_before(pause: Pause, actor: User, reason: str) -> str:
    """Say who paused first when it was not this call; empty when it was, or repeats what did."""
    if (pause.paused_by, pause.reason) == (actor, _plain(reason)):
        return ""
    return _(
        "Refunds are paused already, by {name} since {since}. Your reason was not kept."
    ).format(name=person_name(pause.paused_by), since=_moment(pause.paused_at))


def resumed_before(pause: Pause | None, actor: User, reason: str) -> str:
    """Say who let refunds go on first when it was not this call; empty when it was."""
    if pause is None or pause.resumed_by is None or pause.resumed_at is None:
        return _("Refunds were not paused. Your reason was not kept.")
    if (pause.resumed_by, pause.resumed_reason) == (actor, _plain(reason)):
        return ""
    return _("Refunds go on already, let go by {name} on {when}. Your reason was not kept.").format(
        name=person_name(pause.resumed_by), when=_moment(pause.resumed_at)
    )


def _another_holds(now: Pause) -> str:
    return _("That pause has ended; another one holds since {since}. Nothing was changed.").format(
        since=_moment(now.paused_at)
    )


def _moment(when: datetime) -> str:
    return date_format(timezone.localtime(when), "j F Y, H:i")


def _plain(reason: str) -> str:
    return " ".join(reason.replace("\0", "").split())


def _recorded(action: Action, actor: User, pause: Pause, *, why: str) -> None:
    paused = {"paused": action is Action.REFUNDS_RESUMED}
    audit_write(
        action,
        actor=person(actor),
        subject=Subject("pause", pause.pk),
        before=paused,
        after={"paused": not paused["paused"], "reason": why},
    )


def _switched(actor: User, reason: str, switch: Callable[[str, Pause | None], ResultT]) -> ResultT:
    """Switch while no refund is being written, and record a refusal once it is rolled back."""
    try:
        return _switch(actor, reason, switch)
    except PauseRefused as refusal:
        audit_write(
            Action.REFUNDS_REFUSED,
            actor=person(actor),
            subject=Subject("pause"),
            rule=refusal.code,
            after={"reason": reason, "told": str(refusal)},
        )
        raise


def _switch(actor: User, reason: str, switch: Callable[[str, Pause | None], ResultT]) -> ResultT:
    fresh = User.objects.filter(pk=actor.pk, is_active=True).first()
    if fresh is None or not fresh.has_perm(PAUSE_REFUNDS):
        raise PauseRefused(_("You may not pause refunds."))
    why = _plain(reason)
    if not why:
        raise PauseRefused(_("Please say why; your other operators read it."))
    if len(why) > PAUSE_REASON_LIMIT:
        raise PauseRefused(
            _("Please say it in at most {limit} characters.").format(limit=PAUSE_REASON_LIMIT)
        )
    with faults.commit("refunds.switch", transaction.atomic()):
        pause_lock()
        return switch(why, refunds_pause())
