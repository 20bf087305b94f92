"""Stand-ins for what the settings name: teams, a subject with money in it, and the host."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from uuid import UUID

from django.contrib.auth.models import User

from agent_core.policy import ReviewProposal
from reviews.errors import ChangeRefused
from reviews.models import Review
from reviews.subjects import CardNow

SCOPES: dict[int, frozenset[UUID]] = {}
LEFT: dict[UUID, int] = {}
TOLD: list[tuple[UUID, str]] = []


def reset() -> None:
    """Forget everything, between tests."""
    SCOPES.clear()
    LEFT.clear()
    TOLD.clear()


def scope_of(user: User) -> frozenset[UUID]:
    """Return the teams that a test gave this person."""
    return SCOPES.get(user.pk, frozenset())


def decided(review: Review) -> None:
    """Be told of a decision, final or not."""
    TOLD.append((review.pk, review.state))


def proposal(
    subject_id: UUID,
    team_id: UUID | None,
    *,
    minor: int = 2500,
    reason: str = "damaged",
    kind: str = "refund",
    version: int = 1,
) -> ReviewProposal:
    """Return what is asked about a refund of so much."""
    amount = f"{minor // 100}.{minor % 100:02d}"
    return ReviewProposal(
        kind=kind,
        subject_id=subject_id,
        subject_hash=f"{kind}|{subject_id}|{minor}|EUR|{version}",
        title=f"Refund {amount} EUR to Ana Silva",
        button=f"Approve {amount} EUR",
        amount_minor=minor,
        currency="EUR",
        team_id=team_id,
        card=({"label": "Reason", "text": reason},),
        fields={"amount": amount, "reason": reason},
    )


class FakeSubject:
    """A payment of which `LEFT` says how much can still go back."""

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Read the amount strictly; refuse more than is left."""
        text = changes.get("amount", review.fields["amount"])
        try:
            minor = int(Decimal(text) * 100)
        except InvalidOperation:
            raise ChangeRefused("Write the amount like 5.00.") from None
        assert review.subject_id is not None
        if minor <= 0 or minor > LEFT[review.subject_id]:
            raise ChangeRefused(f"No more than {LEFT[review.subject_id] / 100:.2f} EUR is left.")
        return proposal(
            review.subject_id,
            review.team_id,
            minor=minor,
            reason=changes.get("reason", review.fields["reason"]),
            version=review.version + 1,
        )

    def stale(self, review: Review) -> str | None:
        """Say how much is left when it is less than what would be approved."""
        assert review.subject_id is not None
        left = LEFT[review.subject_id]
        if review.amount_minor is not None and review.amount_minor > left:
            return f"Only {left / 100:.2f} EUR is left to refund."
        return None

    def card_now(self, review: Review) -> CardNow:
        """Add what is left now, where a test says so."""
        left = LEFT.get(review.subject_id) if review.subject_id else None
        if left is None:
            return CardNow(review.card, review.warnings)
        text = f"{left / 100:.2f} EUR is left."
        return CardNow([*review.card, {"label": "Left", "text": text}], review.warnings)


class MovingSubject(FakeSubject):
    """A subject that answers with another payment than the one that was asked about."""

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Point elsewhere."""
        return proposal(review.pk, review.team_id, minor=100)
