"""The cast: Ana asks, Lea and Leo lead her team, Tom only looks, Olga leads another team."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User

from reviews.models import Review
from reviews.services import review_propose
from tests.reviews import fakes

TEAM, OTHER_TEAM = uuid4(), uuid4()

Ask = Callable[..., Review]


@pytest.fixture(autouse=True)
def wiring(settings: Any) -> Iterator[None]:
    """Name the stand-ins where the settings name the other apps."""
    settings.RUN_SCOPE = "tests.reviews.fakes.scope_of"
    settings.REVIEW_DECIDED = "tests.reviews.fakes.decided"
    settings.REVIEW_SUBJECTS = {"refund": "tests.reviews.fakes.FakeSubject"}
    settings.REVIEW_HOURS = 8
    fakes.reset()
    yield
    fakes.reset()


def person(name: str, *rights: str, team: UUID = TEAM, **more: Any) -> User:
    """Make somebody with these rights on reviews, in one team."""
    user = User.objects.create_user(name, password="demo", is_staff=True, **more)
    for right in rights:
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label="reviews", codename=right)
        )
    fakes.SCOPES[user.pk] = frozenset({team})
    return user


@pytest.fixture
def ana(db: None) -> User:
    """Ask for refunds, without any right on reviews."""
    return person("ana", first_name="Ana", last_name="Agent")


@pytest.fixture
def lea(db: None) -> User:
    """Decide for the team."""
    return person("lea", "view_review", "decide_review", first_name="Lea", last_name="Lead")


@pytest.fixture
def leo(db: None) -> User:
    """Decide for the team, too."""
    return person("leo", "view_review", "decide_review", first_name="Leo", last_name="Lead")


@pytest.fixture
def tom(db: None) -> User:
    """Only look."""
    return person("tom", "view_review")


@pytest.fixture
def olga(db: None) -> User:
    """Decide, but for another team."""
    return person("olga", "view_review", "decide_review", team=OTHER_TEAM)


@pytest.fixture
def ask(ana: User) -> Ask:
    """Return a function that asks for a decision, by default on 25.00 EUR for Ana."""

    def asked(*, requester: User = ana, left: int = 10_000, **more: Any) -> Review:
        subject_id = uuid4()
        fakes.LEFT[subject_id] = left
        keys: dict[str, Any] = {"run_id": uuid4(), "call_id": uuid4(), "conversation_id": uuid4()}
        keys |= {name: more.pop(name) for name in tuple(keys) if name in more}
        team_id = more.pop("team_id", TEAM)
        return review_propose(
            requester=requester,
            proposal=fakes.proposal(subject_id, team_id, **more),
            arguments={"payment": "PAY-1", "amount": "25.00", "reason": "damaged"},
            **keys,
        )

    return asked


def confirmation(requester: User, fields: dict[str, str] | None = None) -> Review:
    """Ask the requester to confirm a charge."""
    from agent_core.policy import ReviewProposal

    return review_propose(
        run_id=uuid4(),
        call_id=uuid4(),
        conversation_id=uuid4(),
        requester=requester,
        proposal=ReviewProposal(
            kind="charge",
            subject_id=uuid4(),
            subject_hash="charge|1",
            title="Confirm before Ana Silva is charged 10.00 EUR",
            button="Confirm 10.00 EUR",
            amount_minor=1000,
            currency="EUR",
            team_id=TEAM,
            fields={"confirm": "requester"} if fields is None else fields,
        ),
        arguments={"invoice": "INV-1"},
    )


def facts(review: Review) -> dict[str, Any]:
    """Return everything stored about a review, to prove that a refusal changed nothing."""
    return {**Review.objects.filter(pk=review.pk).values().get()}
