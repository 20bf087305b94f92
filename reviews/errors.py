"""Why a decision, or the use of one, is refused. Every message is a sentence for the person."""

from django.utils.translation import gettext as _

from agent_core.errors import CountersignError


class NotFound(CountersignError):
    """There is no such review for this person: missing and out of scope read alike."""

    code = "review.not_found"

    def __init__(self) -> None:
        super().__init__(_("There is no such request for a decision."))


class ReviewRefused(CountersignError):
    """A person's try to decide a review is refused; the review is as it was."""

    code = "review.refused"


class AlreadyDecided(ReviewRefused):
    """Somebody decided first; the message says who and when."""

    code = "review.already_decided"


class Expired(ReviewRefused):
    """The time to decide is over."""

    code = "review.expired"


class FourEyes(ReviewRefused):
    """Who asked for something, or raised it, cannot approve it."""

    code = "review.four_eyes"


class NoRight(ReviewRefused):
    """The person may see the review but not decide it in this way."""

    code = "review.no_right"


class ChangeRefused(ReviewRefused):
    """The change is none that a reviewer may make."""

    code = "review.change_refused"


class TextRefused(ReviewRefused):
    """A sentence or note is missing or too long."""

    code = "review.text_refused"


class Changed(ReviewRefused):
    """The review is no longer the one the person looked at."""

    code = "review.changed"


class Stale(ReviewRefused):
    """The facts moved since this was asked; the message has the fresh figures."""

    code = "review.stale"


class ReviewUnusable(CountersignError):
    """No approved review allows exactly this now."""

    code = "review.unusable"


class ReviewNotApproved(ReviewUnusable):
    """The review is missing or not approved."""

    code = "review.not_approved"


class ReviewConsumed(ReviewUnusable):
    """The approval has been used already."""

    code = "review.consumed"


class ReviewMismatch(ReviewUnusable):
    """The approval is for something else than what is about to be done."""

    code = "review.mismatch"
