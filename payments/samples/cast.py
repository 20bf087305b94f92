"""Who plays which part in the demo: staff accounts with their roles, and the known customers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from payments.roles import ADMINISTRATORS, AGENTS, LEADS, TRAINEES
from payments.sandbox.tokens import DECLINED, DISPUTED, SLOW_COMMITTED, SLOW_LOST

NORTH: Final = "Team North"
SOUTH: Final = "Team South"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One demo account; the password of all is "demo"."""

    username: str
    first_name: str
    last_name: str
    role: str
    teams: tuple[str, ...] = (NORTH,)
    admin_pages: bool = False
    superuser: bool = False


ACCOUNTS: Final = (
    Account(username="agent", first_name="Tom", last_name="Becker", role=AGENTS),
    Account(username="lead", first_name="Maria", last_name="Lopes", role=LEADS, admin_pages=True),
    Account(username="lead2", first_name="Samuel", last_name="Okoye", role=LEADS, admin_pages=True),
    Account(
        username="trainee", first_name="Iris", last_name="Holm", role=TRAINEES, admin_pages=True
    ),
    Account(username="south", first_name="Dana", last_name="Novak", role=AGENTS, teams=(SOUTH,)),
    Account(
        username="admin",
        first_name="Ada",
        last_name="Stone",
        role=ADMINISTRATORS,
        teams=(NORTH, SOUTH),
        admin_pages=True,
        superuser=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """One earlier payment: months before the month of loading, day of that month, minor units."""

    months: int
    day: int
    amount_minor: int
    disputed: bool = False
    refunded_minor: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One customer whom documentation and tests name; `fault` is how the sandbox behaves."""

    number: int
    email: str
    name: str
    fault: str = ""
    last4: str
    open_minor: int
    earlier: tuple[Earlier, ...]
    currency: str = "EUR"
    brand: str = "visa"
    team: str = NORTH
    language: str = "en"
    description: str = "Service plan"


KNOWN: Final = (
    Known(
        number=1001,
        email="good-card@example.com",
        name="Ana Silva",
        last4="4242",
        open_minor=2500,
        earlier=(
            Earlier(months=1, day=3, amount_minor=4000),
            Earlier(months=1, day=17, amount_minor=2500),
            # Above the daily limit of 500.00, which a full refund therefore meets.
            Earlier(months=2, day=9, amount_minor=90_000),
            Earlier(months=3, day=21, amount_minor=6000, refunded_minor=1000),
        ),
    ),
    Known(
        number=1002,
        email="slow-committed@example.com",
        name="Erik Lund",
        fault=SLOW_COMMITTED,
        last4="0002",
        open_minor=3000,
        earlier=(
            Earlier(months=1, day=5, amount_minor=4500),
            Earlier(months=2, day=11, amount_minor=1500),
        ),
    ),
    Known(
        number=1003,
        email="slow-lost@example.com",
        name="Clara Vidal",
        fault=SLOW_LOST,
        last4="0003",
        open_minor=3500,
        earlier=(
            Earlier(months=1, day=6, amount_minor=5500),
            Earlier(months=2, day=12, amount_minor=2000),
        ),
    ),
    Known(
        number=1004,
        email="declined@example.com",
        name="Paul Moreau",
        fault=DECLINED,
        last4="0004",
        open_minor=4000,
        earlier=(
            Earlier(months=1, day=7, amount_minor=6500),
            Earlier(months=2, day=13, amount_minor=3000),
        ),
    ),
    Known(
        number=1005,
        email="disputed@example.com",
        name="Nina Keller",
        fault=DISPUTED,
        last4="0005",
        open_minor=4500,
        earlier=(
            Earlier(months=1, day=8, amount_minor=7500, disputed=True),
            Earlier(months=2, day=14, amount_minor=3500),
        ),
    ),
    Known(
        number=1006,
        email="yen@example.com",
        name="山田 花子",
        last4="0006",
        open_minor=9899,
        currency="JPY",
        earlier=(
            Earlier(months=1, day=9, amount_minor=9899),
            Earlier(months=2, day=15, amount_minor=500),
        ),
    ),
    Known(
        number=1007,
        email="other-team@example.com",
        name="Oscar Ferreira",
        last4="0007",
        open_minor=5000,
        team=SOUTH,
        earlier=(
            Earlier(months=1, day=10, amount_minor=8500),
            Earlier(months=2, day=16, amount_minor=4500),
        ),
    ),
)
