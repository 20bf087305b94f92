"""How the answers of a conversation may end, in words: the choice that its owner has."""

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _

from agent_core.runs.models import CONVERSATION_STOP_MODES, Conversation
from agent_core.runs.states import StopMode
from agent_core.runs.wording import STOP_MODES


@dataclass(frozen=True, slots=True)
class Ending:
    """One way to end an answer."""

    value: str
    label: str
    sentence: str
    chosen: bool


def endings_of(conversation: Conversation) -> list[Ending]:
    """Return the ways to choose from; the first one follows the desk's setting."""
    usual = _("As usual here (%(mode)s)") % {"mode": StopMode(settings.STOP_MODE).label}
    follows = _("Follows the setting of this desk, also when that changes.")
    return [
        Ending("", usual, follows, chosen=not conversation.stop_mode),
        *(
            Ending(
                mode.value,
                _written(mode),
                str(STOP_MODES[mode]),
                chosen=conversation.stop_mode == mode,
            )
            for mode in CONVERSATION_STOP_MODES
        ),
    ]


def _written(mode: StopMode) -> str:
    label = str(mode.label)
    return label[:1].upper() + label[1:]
