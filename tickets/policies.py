"""Who may open tickets: whoever holds the right, without a second person. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from agent_core.policy import Policy, Proposal, Verdict

ADD_TICKET: Final = "tickets.add_ticket"


def ticket_allowed(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
    """Allow with the right; block without it."""
    if ADD_TICKET in proposal.rights:
        return Verdict(kind="allow", rule="right.present")
    text = _("Your role does not open tickets. No ticket was opened.")
    return Verdict(kind="block", rule="right.missing", text=text, data={"right": ADD_TICKET})


POLICIES: Final[tuple[Policy, ...]] = (ticket_allowed,)
