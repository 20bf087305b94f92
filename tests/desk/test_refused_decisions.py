"""Decisions at the desk that are refused: nothing is decided, and what was typed is kept."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from reviews.models import Review, ReviewDecision
from tests.desk.conftest import Enter
from tests.desk.test_chat import DATA
from tests.desk.test_review_pages import facts


@pytest.mark.parametrize("version", [None, "", "x", "-1", "0", "٣", "1" * 5000])
@pytest.mark.parametrize("decision", ["approve", "change", "raise", "reject"])
def test_a_decision_without_a_version_that_can_be_read_decides_nothing(
    enter: Enter, maria: User, review: Review, decision: str, version: str | None
) -> None:
    before = facts(review)
    amount = {"change": "3.50", "raise": "7.00"}.get(decision, "5.00")
    form = {"decision": decision, "amount": amount, "sentence": "No."}
    if version is not None:
        form["version"] = version
    answer = enter(maria).post(reverse("api-decision", args=[review.pk]), form, **DATA)
    assert answer.status_code == 409
    assert answer.json()["error"].startswith("This request was changed since you opened it.")
    assert facts(review) == before
    assert ReviewDecision.objects.get().refused_because == "review.changed"


@pytest.mark.parametrize("amount", ["", "   "])
def test_an_emptied_amount_is_refused_and_not_taken_for_the_whole_one(
    enter: Enter, maria: User, review: Review, amount: str
) -> None:
    before = facts(review)
    form = {"decision": "change", "amount": amount, "reason": "the box was crushed", "version": "1"}
    answer = enter(maria).post(reverse("api-decision", args=[review.pk]), form, **DATA)
    assert answer.status_code == 409
    said = "Write the new value in one line, or leave the field as it was."
    assert answer.json()["error"] == said
    assert facts(review) == before
    assert ReviewDecision.objects.get().refused_because == "review.change_refused"


@pytest.mark.parametrize("form", [{}, {"amount": " 5.00 ", "reason": "the box was crushed"}])
def test_an_approval_with_changes_that_changes_nothing_is_refused(
    enter: Enter, maria: User, review: Review, form: dict[str, str]
) -> None:
    before = facts(review)
    posted = {"decision": "change", "version": "1", **form}
    answer = enter(maria).post(reverse("api-decision", args=[review.pk]), posted, **DATA)
    assert answer.status_code == 409
    said = "Nothing was changed. Use “Approve 5.00 EUR” to approve the request as it is."
    assert answer.json()["error"] == said
    assert facts(review) == before
