"""Who acts in a run: what one statement reads is what Django itself would say."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, Permission, User

from agent_core.contract import RunContext
from agent_core.runs import claims, services
from agent_core.runs.acting import Acting
from agent_core.runs.models import Call, Conversation, Message, Run
from agent_core.runs.states import Role

seen: list[User] = []


def scope_noted(user: User) -> frozenset[Any]:
    """Stand in for an adopter's own scope: it looks at whatever it likes."""
    seen.append(user)
    return frozenset()


class Directory(ModelBackend):
    """Grants what no row of ours does, and nothing else."""

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        return {"payments.from_elsewhere"}


@pytest.fixture
def claimed(conversation: Conversation, tom: User) -> Run:
    """Return a run that this process has claimed, of somebody who is no superuser."""
    User.objects.filter(pk=tom.pk).update(is_superuser=False)
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    found = claims.run_claim(run.pk, quarantined=False)
    assert found is not None
    return found


def context(run: Run) -> RunContext:
    """Return who acts, read for the first time."""
    return Acting(run, lambda *_: None).context()


def rights_of(user: User) -> frozenset[str]:
    """Return what Django says of a user whom it has just read."""
    return frozenset(User.objects.get(pk=user.pk).get_all_permissions())


def test_rights_are_those_given_to_the_person_and_to_their_groups(claimed: Run, tom: User) -> None:
    first, second, third = Permission.objects.order_by("pk")[:3]
    tom.user_permissions.set([first, second])
    group = Group.objects.create(name="night shift")
    group.permissions.set([second, third])
    Group.objects.create(name="not theirs").permissions.set(Permission.objects.all())
    tom.groups.set([group])

    found = context(claimed).rights

    assert len(found) == 3
    assert found == rights_of(tom)


def test_a_superuser_has_every_right(claimed: Run, tom: User) -> None:
    User.objects.filter(pk=tom.pk).update(is_superuser=True)
    assert len(context(claimed).rights) == Permission.objects.count()
    assert context(claimed).rights == rights_of(tom)


@pytest.mark.parametrize("superuser", [False, True])
def test_whose_account_is_closed_has_no_right_and_no_team(
    claimed: Run, tom: User, superuser: bool
) -> None:
    tom.user_permissions.set(Permission.objects.all())
    User.objects.filter(pk=tom.pk).update(is_active=False, is_superuser=superuser)
    found = context(claimed)
    assert (found.rights, found.team_ids) == (frozenset(), frozenset())


def test_a_right_that_was_taken_away_is_gone_at_the_next_effect(claimed: Run, tom: User) -> None:
    tom.user_permissions.set(Permission.objects.all())
    acting = Acting(claimed, lambda *_: None)
    assert acting.context().rights
    tom.user_permissions.clear()
    tom.groups.clear()
    acting.changed()
    assert acting.context().rights == frozenset()


def test_another_backend_is_asked_for_the_rights_that_it_grants(
    claimed: Run, settings: Any
) -> None:
    settings.AUTHENTICATION_BACKENDS = ["tests.runs.test_acting.Directory"]
    assert context(claimed).rights == {"payments.from_elsewhere"}


def test_a_scope_of_ones_own_is_given_the_whole_person(
    claimed: Run, tom: User, settings: Any
) -> None:
    settings.RUN_SCOPE = "tests.runs.test_acting.scope_noted"
    User.objects.filter(pk=tom.pk).update(email="tom@example.com", first_name="Tom", last_name="T")
    seen.clear()

    found = context(claimed)

    (given,) = seen
    tom.refresh_from_db()
    fields = [field.attname for field in User._meta.concrete_fields]
    assert [getattr(given, name) for name in fields] == [getattr(tom, name) for name in fields]
    assert (found.requester_id, found.requester_name) == (tom.pk, "Tom T")


def test_words_are_the_staff_members_own_in_their_order_without_later_and_removed_ones(
    conversation: Conversation, tom: User
) -> None:
    for place, (role, text) in enumerate(
        [(Role.STAFF, "one"), (Role.ASSISTANT, "no"), (Role.STAFF, "two"), (Role.STAFF, "gone")]
    ):
        Message.objects.create(conversation=conversation, position=place + 1, role=role, text=text)
    Message.objects.filter(text="gone").update(removed_at=conversation.created_at)
    run = services.message_send(conversation=conversation, sender=tom, text="three")
    services.message_send(conversation=conversation, sender=tom, text="in line")
    claimed = claims.run_claim(run.pk, quarantined=False)
    assert claimed
    assert context(claimed).words == ("one", "two", "three")


def test_what_tools_have_told_comes_latest_first_and_without_silent_ones(claimed: Run) -> None:
    ends = [claimed.created_at, claimed.claimed_at, claimed.claimed_at]
    for place, (content, ended) in enumerate(zip(("old", "new {a,b}\n", ""), ends, strict=True)):
        Call.objects.create(
            pk=f"00000000-0000-0000-0000-00000000000{place}",
            run=claimed, batch=1, position=place, tool="look",
            label=f"Looked {place}", content=content, ended_at=ended,
        )  # fmt: skip
    assert context(claimed).told == (("Looked 1", "new {a,b}\n"), ("Looked 0", "old"))
