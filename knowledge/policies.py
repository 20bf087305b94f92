"""Who may search the help articles: whoever holds the right to view them. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from agent_core.policy import Policy, Proposal, Verdict

VIEW_ARTICLE: Final = "knowledge.view_article"


def search_allowed(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
    """Allow with the right; block without it."""
    if VIEW_ARTICLE in proposal.rights:
        return Verdict(kind="allow", rule="right.present")
    text = _("Your role does not read the help articles. Nothing was searched.")
    return Verdict(kind="block", rule="right.missing", text=text, data={"right": VIEW_ARTICLE})


POLICIES: Final[tuple[Policy, ...]] = (search_allowed,)
