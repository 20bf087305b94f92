"""The forms by which a person decides one review; the services judge what they hold."""

from typing import Final

from django import forms
from django.utils.translation import gettext_lazy as _

from reviews.changes import TEXT_LENGTH, VALUE_LENGTH
from reviews.errors import ChangeRefused, ReviewRefused
from reviews.states import Decision


def version_seen(text: str) -> int:
    """Return the version that a page says it showed, 0 when it says none that can be read.

    Versions begin with 1, so whoever posts without one is told that the request has changed.
    """
    known = text.isascii() and text.isdigit() and len(text) < 8
    return int(text) if known else 0


def field_of(refusal: ReviewRefused) -> str:
    """Return the field beside which a refusal is said; empty when it is about the whole request."""
    named = str(refusal.data.get("field") or "")
    return named or ("amount" if isinstance(refusal, ChangeRefused) else "")


class DecisionForm(forms.Form):
    """What every decision carries: which version was seen, and a note that stays inside."""

    version = forms.CharField(required=False, widget=forms.HiddenInput)
    note = forms.CharField(
        label=_("Internal note"), required=False, max_length=TEXT_LENGTH, widget=forms.Textarea
    )

    def clean_version(self) -> int:
        """Read the version; an unreadable one is left to the service, which refuses it."""
        return version_seen(str(self.cleaned_data["version"]))


class ChangeForm(DecisionForm):
    """Another amount or another reason; both are text until the subject has read them."""

    amount = forms.CharField(label=_("Amount"), required=False, max_length=VALUE_LENGTH)
    reason = forms.CharField(label=_("Reason"), required=False, max_length=VALUE_LENGTH)

    field_order = ("version", "amount", "reason", "note")


class RejectForm(DecisionForm):
    """A sentence for the chat, beside the note."""

    sentence = forms.CharField(
        label=_("Sentence for the person who asked"),
        max_length=TEXT_LENGTH,
        widget=forms.Textarea,
        error_messages={"required": _("Write a sentence for the person who asked.")},
    )

    field_order = ("version", "sentence", "note")


FORMS: Final[dict[Decision, type[DecisionForm]]] = {
    Decision.APPROVE: DecisionForm,
    Decision.CHANGE: ChangeForm,
    Decision.RAISE: ChangeForm,
    Decision.REJECT: RejectForm,
    Decision.WITHDRAW: DecisionForm,
}
