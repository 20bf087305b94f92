"""What a person may write into a decision: the two fields that can change, sentence and note."""

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from agent_core.policy import ReviewProposal
from reviews.errors import ChangeRefused, TextRefused
from reviews.models import Review
from reviews.subjects import subject_of

Changes = dict[str, str]

# Payment and customer never change: that would be a request nobody made.
CHANGEABLE: Final = ("amount", "reason")
VALUE_LENGTH: Final = 300
TEXT_LENGTH: Final = 1000


def changes_checked(review: Review, changes: Mapping[str, object] | None) -> Changes:
    """Return the fields that really differ from what stands, as text.

    Raises: ChangeRefused when a field may not change, or a value is no line of text.
    """
    found: Changes = {}
    for name, value in (changes or {}).items():
        if name not in CHANGEABLE or name not in review.fields:
            raise ChangeRefused(_("Only the amount and the reason of a request can be changed."))
        if not isinstance(value, str):
            raise ChangeRefused(_("Write the new value as text, for example 5.00."))
        text = value.strip()
        if text == review.fields[name]:
            continue
        if not text or not text.isprintable() or len(text) > VALUE_LENGTH:
            raise ChangeRefused(
                _("Write the new value in one line, or leave the field as it was."), field=name
            )
        found[name] = text
    return found


def changed_proposal(review: Review, changes: Changes, actor: User) -> ReviewProposal:
    """Return what would be asked with these changes; the thing that is asked about stays.

    Raises: ChangeRefused, also when the subject says so.
    """
    subject = subject_of(review.kind)
    if subject is None:
        raise ChangeRefused(_("This request can only be approved as it is, or rejected."))
    proposal = subject.changed(review, changes, actor)
    same = (
        proposal.kind == review.kind
        and proposal.subject_id == review.subject_id
        and proposal.team_id == review.team_id
        and proposal.currency == review.currency
        and (proposal.amount_minor is None) == (review.amount_minor is None)
    )
    if not same:
        raise ChangeRefused(_("Only the amount and the reason of a request can be changed."))
    return proposal


def raises(review: Review, proposal: ReviewProposal) -> bool:
    """Tell whether the proposal asks for more than the review does."""
    return (proposal.amount_minor or 0) > (review.amount_minor or 0)


def text_checked(text: str, *, required: bool) -> str:
    """Return a sentence or note without odd characters.

    Raises: TextRefused when it is missing or too long.
    """
    clean = "".join(sign for sign in text if sign.isprintable() or sign == "\n").strip()
    field = "sentence" if required else "note"
    if required and not clean:
        raise TextRefused(
            _("Write a sentence for the person who asked, saying why not."), field=field
        )
    if len(clean) > TEXT_LENGTH:
        raise TextRefused(
            _("That text is too long; %(most)d characters are the most.") % {"most": TEXT_LENGTH},
            field=field,
        )
    return _masked(clean)


def text_cut(value: object) -> str:
    """Return anything that was posted as a short text that a row can hold."""
    return _masked("".join(sign for sign in str(value)[:VALUE_LENGTH] if sign.isprintable()))


def _masked(text: str) -> str:
    """Mask card numbers and secrets before a row is written."""
    masked: str = import_string(settings.TEXT_MASK)(text)
    return masked
