"""What a gateway is: it builds a body once, sends it under its key, and finds what it sent.

Only `payments.services*` uses gateways. A gateway never raises for what a processor or a line may
do: a reply is `succeeded`, `accepted` (a refund that the processor carries out later), `failed` for
good, or `unknown`, and `unknown` is asked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol, cast
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from payments.gateways.classes import AnswerClass, Failure
from payments.states import Operation

ReplyState = Literal["accepted", "succeeded", "failed", "unknown"]
SeenKind = Literal["payment", "refund", "dispute"]
# `accepted`: the processor has it and will go on by itself. The last three are a dispute's.
SeenState = Literal["accepted", "succeeded", "failed", "open", "won", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is sent, at every try the same, and since when; the processor's name for it if known."""

    operation: Operation
    intent_id: UUID
    key: str
    body: Mapping[str, str]
    since: datetime
    processor_ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a try came to, and its class when it did not succeed.

    `strain`: the processor was out of reach, broken or asked for less; `broke`: it answered with a
    failure of its own. `decline_code` is what the bank said, for those with the right to see it;
    `detail` is for the log alone.
    """

    state: ReplyState
    processor_ref: str = ""
    failure: Failure = ""
    kind: AnswerClass | None = None
    strain: bool = False
    broke: bool = False
    decline_code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the processor says of one object, whoever asked and whoever made it.

    `payment_ref` names the payment it belongs to, which may be the object itself; `intent_id` is
    ours, from its metadata. Amounts are our minor units, currencies ISO codes.
    """

    kind: SeenKind
    processor_ref: str
    payment_ref: str
    amount_minor: int
    currency: str
    state: SeenState
    failure: Failure = ""
    intent_id: UUID | None = None
    created_at: datetime


class Gateway(Protocol):
    """One processor."""

    def charge_body(
        self, *, intent_id: UUID, amount_minor: int, currency: str, method_ref: str, reference: str
    ) -> dict[str, str]:
        """Build what a charge sends; it is stored with the intent and never built again.

        Raises:
            AmountRefused: the processor cannot take this amount of this currency.
        """
        ...

    def refund_body(
        self, *, intent_id: UUID, amount_minor: int, currency: str, payment_ref: str, reference: str
    ) -> dict[str, str]:
        """Build what a refund sends; it is stored with the intent and never built again.

        Raises:
            AmountRefused: the processor cannot take this amount of this currency.
        """
        ...

    def send(self, order: Order) -> Reply:
        """Send the stored body under the stored key."""
        ...

    def find(self, order: Order) -> Reply | None:
        """Look for what an earlier try did, by our metadata; None when there is certainly nothing.

        A look-up that got no certain answer is `unknown`, never None.
        """
        ...

    def listed(
        self, kind: SeenKind, since: datetime, until: datetime, payment_ref: str = ""
    ) -> Iterator[Seen]:
        """Yield all of a kind that was made from `since` up to `until`, whoever made it.

        `payment_ref`: only what belongs to this payment.

        Raises:
            ProcessorSilent: the list could not be read to its end.
        """
        ...

    def look_up(self, kind: SeenKind, processor_ref: str) -> Seen | None:
        """Read one object; None when there is certainly none of this name.

        Raises:
            ProcessorSilent: there was no certain answer.
        """
        ...


def gateway_named(name: str) -> Gateway:
    """Return the gateway registered under a name."""
    return cast("Gateway", import_string(settings.PAYMENT_GATEWAYS[name])())
