"""From a posted form to one service call; a refusal comes back beside the field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import QueryDict
from django.utils.translation import gettext as _

from reviews.errors import ReviewRefused
from reviews.forms import FORMS, DecisionForm, field_of
from reviews.ledger import shown_to_reader
from reviews.models import Review
from reviews.services import review_approve, review_raise, review_reject, review_withdraw
from reviews.states import Channel, Decision

_NOT_CHANGES = frozenset({"version", "note", "sentence", "csrfmiddlewaretoken"})


@dataclass
class Submission:
    """One posted decision: the form as it was filled in, and what it asks to change."""

    review: Review
    decision: Decision
    form: DecisionForm
    changes: Mapping[str, object]
    error: str = ""

    @property
    def approves(self) -> bool:
        """Tell whether this asks to approve something, now or by somebody else."""
        return self.decision not in (Decision.REJECT, Decision.WITHDRAW)

    def decide(self, actor: User) -> Review | None:
        """Call the service; None when the form itself is not filled in properly.

        Raises: NotFound or a ReviewRefused.
        """
        # A field that the form does not have is a forged one; the service refuses and keeps it.
        forged = self.approves and bool(set(self.changes) - set(self.form.fields))
        if not self.form.is_valid() and not forged:
            return None
        given: dict[str, Any] = self.form.cleaned_data
        common: dict[str, Any] = {
            "review_id": self.review.pk,
            "actor": actor,
            "channel": Channel.ADMIN,
        }
        if self.decision is Decision.WITHDRAW:
            return review_withdraw(**common)
        common |= {"note": given.get("note", ""), "version": given.get("version") or 0}
        if self.decision is Decision.REJECT:
            return review_reject(sentence=given.get("sentence", ""), **common)
        if self.decision is Decision.RAISE:
            return review_raise(changes=self.changes, **common)
        # On the plain button what counts as a change is forged; with none it is an approval.
        changes = self.changes if self.decision is Decision.CHANGE else self.changes or None
        return review_approve(changes=changes, **common)

    def error_add(self, refusal: ReviewRefused) -> None:
        """Put the sentence where the person looks: beside the field, or at the top."""
        field = field_of(refusal)
        if field in self.form.fields:
            self.form.add_error(field, str(refusal))
        else:
            self.error = str(refusal)


def submission_read(review: Review, decision: Decision, posted: QueryDict) -> Submission:
    """Read what was posted; fields nobody offered count as changes, so that they are refused."""
    form = FORMS[decision](posted.dict())
    changes: dict[str, object] = {
        name: value for name, value in posted.dict().items() if name not in _NOT_CHANGES
    }
    return Submission(review, decision, form, changes)


def forms_for(
    review: Review, offered: Sequence[Decision], submission: Submission | None
) -> list[dict[str, Any]]:
    """Return a form with its button for each decision that may be taken."""
    buttons = {
        Decision.APPROVE: shown_to_reader(review, review.button),
        Decision.CHANGE: _("Approve with changes"),
        Decision.RAISE: _("Raise, for somebody else to approve"),
        Decision.REJECT: _("Reject"),
        Decision.WITHDRAW: _("Withdraw"),
    }
    rows = []
    for decision in offered:
        initial = {"version": review.version, **review.fields}
        form = FORMS[decision](initial=initial, auto_id=f"{decision.value}_%s")
        if submission is not None and submission.decision is decision:
            form = submission.form
            form.auto_id = f"{decision.value}_%s"
            # What was typed is kept; the version is the one that the page shows now.
            form.data = {**form.data, "version": str(review.version)}
        typed = submission is not None and submission.decision is decision
        rows.append(
            {
                "decision": decision.value,
                "button": buttons[decision],
                "form": form,
                "open": typed or decision is Decision.APPROVE,
            }
        )
    return rows
