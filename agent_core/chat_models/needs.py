"""One thing that a staff member asks for, as the offline model read it."""

from __future__ import annotations

from dataclasses import dataclass

from agent_core.chat_models.kinds import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One thing that is asked for. `words` is the clause as it was written.

    `key` leads to a customer (address, name, CUS-…, #W…), `reference` is the payment or invoice
    itself, `newest` says that the last one is meant, `ordinal` which one of a list, `part` that the
    amount is not named or cannot be read.
    """

    kind: Kind
    words: str
    key: str = ""
    reference: str = ""
    newest: bool = False
    ordinal: int = 0
    part: bool = False
    amount: str = ""
    reason: str = ""
    period: str = ""
    about: str = ""
    method: str = ""
    what: str = "payments"
    currency: str = ""
    format: str = "csv"
