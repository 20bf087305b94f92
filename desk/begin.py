"""Begin a conversation with its first message, once for each page that was sent."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from agent_core import faults
from agent_core.runs.models import Message
from agent_core.runs.services import conversation_start, message_send


def conversation_begin(
    *, owner: User, text: str, language: str, client_key: UUID, measure: bool = False
) -> UUID:
    """Start a conversation with its first message; the same key gives the first one again.

    Raises: MessageRefused or StopModeRefused when the message cannot be sent; then there is no
    conversation either.
    """
    with faults.commit("conversation.begin", transaction.atomic()):
        # Two clicks are two requests: the second waits here and then finds what the first made.
        User.objects.select_for_update().get(pk=owner.pk)
        sent = Message.objects.filter(conversation__owner=owner, client_key=client_key).first()
        if sent is not None:
            return sent.conversation_id
        conversation = conversation_start(owner=owner, language=language)
        message_send(
            conversation=conversation,
            sender=owner,
            text=text,
            client_key=client_key,
            measure=measure,
        )
        return conversation.pk
