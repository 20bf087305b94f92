"""Why a run ended, in words for staff: one grammar for the chat, the admin and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict

from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from agent_core.router import STOP_RULES
from agent_core.runs.states import StopMode

if TYPE_CHECKING:
    from agent_core.runs.models import StopRecord


class Explanation(TypedDict):
    """What the page shows under an answer."""

    cause: str
    rule_words: str
    made: int
    saved: int
    calls: str
    notes: list[str]
    done: list[str]
    not_done: list[str]


CAUSES: Final[Mapping[str, Any]] = {
    "policy_block": gettext_lazy("a rule or a person refused"),
    "completed": gettext_lazy("everything asked for is done"),
    "fatal": gettext_lazy("it failed for good"),
    "budget": gettext_lazy("a limit was reached"),
    "answered": gettext_lazy("the assistant answered"),
    "cancelled": gettext_lazy("you stopped it"),
    "failed": gettext_lazy("the assistant could not go on"),
    "parked": gettext_lazy("set aside for an operator"),
}

RULES: Final[Mapping[str, Any]] = {
    "policy_block": gettext_lazy(
        "One step was refused, and a refusal ends the request whatever else was going on."
    ),
    "completed": gettext_lazy(
        "Every step is complete and nothing was left open, so its own text is the answer."
    ),
    "fatal": gettext_lazy("Every step failed in a way that trying again cannot mend."),
    "budget": gettext_lazy("The request would have gone on, but its limit was used up."),
    "answered": gettext_lazy("The assistant had nothing more to do and answered in its own words."),
    "cancelled": gettext_lazy("The work ended at the next safe point after you asked."),
    "failed": gettext_lazy("A fault on our side ended the request; it is in the log."),
    "parked": gettext_lazy("Workers stopped several times on this request."),
}

LIMITS: Final[Mapping[str, Any]] = {
    "model_calls": gettext_lazy("model calls: %(used)s of %(allowed)s"),
    "tool_calls": gettext_lazy("steps: %(used)s of %(allowed)s"),
    "tokens": gettext_lazy("tokens: %(used)s of %(allowed)s"),
    "seconds": gettext_lazy("working time: %(used)s of %(allowed)s seconds"),
    "tries": gettext_lazy("tries of one step: %(used)s of %(allowed)s"),
}

BROKEN_OFF: Final = frozenset({"cancelled", "failed", "parked"})
"""Ends that come from outside the router: what it had decided before is not in their records."""

POLISH: Final[Mapping[str, Any]] = {
    "kept": gettext_lazy(
        "The wording is the assistant's; every amount, date, reference and name was compared."
    ),
    "facts lost": gettext_lazy(
        "The assistant's rewording changed a fact, so the original wording is shown."
    ),
    "model failed": gettext_lazy(
        "The assistant did not answer when asked to reword, so the original wording is shown."
    ),
    "no budget": gettext_lazy(
        "The limits left nothing for a rewording, so the original wording is shown."
    ),
}

STOP_MODES: Final[Mapping[str, Any]] = {
    StopMode.HARD: gettext_lazy(
        "An answer is the text of the finished steps, word for word; nothing is rewritten."
    ),
    StopMode.POLISH: gettext_lazy(
        "The assistant rewords a finished answer once; if a fact differs, the original is shown."
    ),
    StopMode.NEVER: gettext_lazy(
        "Finished steps go back to the assistant once more, to measure what stopping saves."
    ),
}


def explain(record: StopRecord) -> Explanation:
    """Return why a run ended, in words."""
    words = str(RULES.get(record.rule, ""))
    if record.evidence.get("polish") == "kept":
        words = _("Every step is complete and nothing was left open.")
    cause = str(CAUSES.get(record.rule, record.rule))
    if record.evidence.get("removed"):
        cause = _("you removed the message")
        words = _("It was taken out of the line before the assistant read it.")
    limit = LIMITS.get(str(record.evidence.get("limit", "")))
    if record.rule == "budget" and limit is not None:
        words = f"{words} {_('Limit')}: {str(limit) % record.evidence}."
    return {
        "cause": cause,
        "rule_words": words,
        "made": record.model_calls_made,
        "saved": record.model_calls_saved,
        "calls": calls_in_words(
            made=record.model_calls_made,
            saved=record.model_calls_saved,
            tokens=record.tokens_saved,
            estimated=record.tokens_estimated,
        ),
        "notes": _notes(record),
        "done": list(record.done),
        "not_done": list(record.not_done),
    }


def _notes(record: StopRecord) -> list[str]:
    """Say what the run's way of ending did to it, where that is not plain from the rest."""
    if record.run.stop_mode == StopMode.NEVER:
        return _measured(record)
    polish = POLISH.get(str(record.evidence.get("polish", "")))
    return [str(polish)] if polish is not None else []


def _measured(record: StopRecord) -> list[str]:
    """Say where a measured run would have stopped, as far as its record tells."""
    held = record.evidence.get("would_have_stopped", [])
    if held:
        said = _("Measured without stopping: it would have stopped after step %(step)s: %(cause)s.")
        cause = CAUSES.get(held[0]["rule"], held[0]["rule"])
        return [said % {"step": held[0]["batch"], "cause": cause}]
    if record.rule in BROKEN_OFF:
        return []
    if record.rule in STOP_RULES:
        return [_("Measured without stopping: what ended it does so in every mode.")]
    return [_("Measured without stopping: it would not have stopped earlier.")]


def calls_in_words(*, made: int, saved: int, tokens: int, estimated: bool) -> str:
    """Say how often the model was called, and what the stop has saved."""
    said = ngettext("%(made)d model call made", "%(made)d model calls made", made) % {"made": made}
    if not saved:
        return said
    spared = _("%(calls)s, %(saved)d saved") % {"calls": said, "saved": saved}
    if not tokens:
        return spared
    figure = ngettext("%(tokens)s token", "%(tokens)s tokens", tokens) % {
        "tokens": number_format(tokens, force_grouping=True)
    }
    if estimated:
        figure = _("about %(tokens)s") % {"tokens": figure}
    return f"{spared} ({figure})"


def model_failed(*, retryable: bool) -> str:
    """Return the sentence for a model that gave no usable answer."""
    if retryable:
        return _("The assistant's model is not answering just now. Nothing is lost; try again.")
    return _("The assistant's model gave no usable answer. Try again or say it in other words.")


def outcome_unknown(label: str) -> str:
    """Return the sentence for an effect that was being executed when its run ended."""
    return _("%(step)s: it is not known yet whether this happened; it is being checked.") % {
        "step": _(label)
    }


def run_broke() -> str:
    """Return the sentence for a fault of ours that ended a run."""
    return _("The assistant could not finish this because of a fault on our side.")


def refusal(*, state: str, title: str, who: str, sentence: str) -> str:
    """Return what the staff member reads about a review that was not approved."""
    if state == "rejected":
        text = _("%(title)s: rejected by %(who)s. Nothing was done.") % {"title": title, "who": who}
        return f"{text} {_('Reason')}: {sentence}" if sentence else text
    if state == "withdrawn":
        return _("%(title)s: withdrawn by %(who)s. Nothing was done.") % {
            "title": title,
            "who": who,
        }
    return _("%(title)s: nobody decided in time, so it expired. Nothing was done.") % {
        "title": title
    }
