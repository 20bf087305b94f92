"""Who may decide what, as pure functions over looked-up facts; services and pages ask the same."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from reviews.errors import FourEyes, NoRight, NotFound
from reviews.states import Decision


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How one person stands to one review, with rights read now."""

    active: bool
    requester: bool
    raised: bool
    in_scope: bool
    may_view: bool
    may_decide: bool
    requester_decides: bool

    @property
    def sees(self) -> bool:
        """Tell whether the review exists for this person at all."""
        return self.active and (
            self.requester or (self.in_scope and (self.may_view or self.may_decide))
        )


Refusal = NotFound | NoRight | FourEyes


def decision_refused(standing: Standing, decision: Decision) -> Refusal | None:
    """Return why this person may not decide so; None when they may.

    Order matters: whoever cannot see the review learns nothing, not even that four eyes hold.
    """
    if not standing.sees:
        return NotFound()
    if decision is Decision.WITHDRAW:
        return (
            None if standing.requester else NoRight(_("Only who asked for this can withdraw it."))
        )
    if standing.requester_decides:
        return _confirmation_refused(standing, decision)
    return _review_refused(standing, decision)


def _review_refused(standing: Standing, decision: Decision) -> NoRight | FourEyes | None:
    entitled = standing.may_decide and standing.in_scope
    if entitled and decision is Decision.REJECT:
        return None
    if standing.requester:
        return FourEyes(_("You asked for this yourself, so somebody else has to decide it."))
    if not entitled:
        return NoRight(_("You can see this request but not decide it."))
    if standing.raised and decision is not Decision.RAISE:
        return FourEyes(_("You raised the amount yourself, so somebody else has to approve it."))
    return None


def _confirmation_refused(standing: Standing, decision: Decision) -> NoRight | None:
    if not standing.requester:
        return NoRight(_("Only who asked for this can confirm it."))
    if decision in (Decision.CHANGE, Decision.RAISE):
        return NoRight(_("This can only be confirmed as it is, or declined."))
    return None
