"""Decisions at the desk that are refused: nothing is decided, and what was typed is kept."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from payments.roles import LEADS
from reviews.models import Review, ReviewDecision
from tests.desk.conftest import Enter, person
from tests.desk.test_chat import DATA, words
from tests.desk.test_review_pages import decide, facts


class Fields(HTMLParser):
    """Collects the fields of a page: what each holds, and what is said beside the wrong one."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.holds: dict[str, str] = {}
        self.wrong: list[str] = []
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a field."""
        given = dict(attrs)
        self.inside = (given.get("id") or "") if tag == "textarea" else ""
        if tag in ("input", "textarea") and "id" in given:
            self.holds[given["id"] or ""] = given.get("value") or ""
        if given.get("aria-invalid") == "true":
            assert given["aria-describedby"] == "wrong-words"
            self.wrong.append(given["id"] or "")

    def handle_endtag(self, tag: str) -> None:
        """Leave a field."""
        self.inside = ""

    def handle_data(self, data: str) -> None:
        """Note what a longer field holds."""
        if self.inside:
            self.holds[self.inside] += data


def refused(answer: Any) -> Fields:
    """Return the fields of a page that says why a try was refused."""
    assert answer.status_code == 422
    return Fields(answer.content.decode())


LONG = "the box was crushed on the way, and the <b>lid</b> with it " * 4


def test_a_refused_change_keeps_what_was_typed_and_says_why_beside_the_field(
    enter: Enter, maria: User, review: Review
) -> None:
    before = facts(review)
    form = {"decision": "change", "amount": "9.99", "reason": LONG, "note": "seen the photo"}
    answer = decide(enter, maria, review, **form)
    page = refused(answer)
    kept = [page.holds[f"change-{name}"] for name in ("amount", "reason", "note")]
    assert kept == ["9.99", LONG, "seen the photo"]
    assert page.wrong == ["change-amount"]
    assert "That is more than was asked for. Raise it" in words(answer.content.decode())
    assert page.holds["reject-sentence"] == page.holds["reject-note"] == ""
    assert facts(review) == before


@pytest.mark.parametrize("field", ["sentence", "note"])
def test_a_refused_rejection_keeps_a_text_that_was_too_long(
    enter: Enter, maria: User, review: Review, field: str
) -> None:
    texts = {"sentence": "Not ours.", "note": "third time", field: "x" * 1001}
    page = refused(decide(enter, maria, review, decision="reject", **texts))
    assert page.wrong == [f"reject-{field}"]
    assert {name: page.holds[f"reject-{name}"] for name in texts} == texts
    assert page.holds["change-note"] == ""
    assert facts(review)["state"] == "pending"


def test_an_emptied_amount_comes_back_empty_with_the_sentence(
    enter: Enter, maria: User, review: Review
) -> None:
    page = refused(decide(enter, maria, review, decision="change", amount="", reason="other"))
    assert (page.holds["change-amount"], page.holds["change-reason"]) == ("", "other")
    assert page.wrong == ["change-amount"]


def test_a_reason_that_cannot_be_is_said_beside_the_reason(
    enter: Enter, maria: User, review: Review
) -> None:
    page = refused(decide(enter, maria, review, decision="change", amount="4", reason="x" * 301))
    assert page.wrong == ["change-reason"]


def test_a_request_that_changed_is_shown_anew_with_what_was_typed(
    enter: Enter, maria: User, teams: Any, review: Review
) -> None:
    """The version of the new page is the new one: it is what the person looks at now."""
    samuel = person("Samuel", LEADS, teams["North"])
    decide(enter, samuel, review, decision="raise", amount="7.00")
    answer = decide(enter, maria, review, decision="reject", sentence="Not ours.")
    page = refused(answer)
    said = words(answer.content.decode())
    assert "This request was changed since you opened it. It now reads: Refund 7.00 EUR" in said
    assert page.holds["reject-sentence"] == "Not ours."
    assert page.wrong == []
    assert 'name="version" value="2"' in answer.content.decode()


def test_a_script_is_told_the_field(enter: Enter, maria: User, review: Review) -> None:
    form = {"decision": "change", "amount": "9.99", "version": "1"}
    answer = enter(maria).post(reverse("api-decision", args=[review.pk]), form, **DATA)
    said = answer.json()
    assert (answer.status_code, said["fields"]) == (409, {"amount": said["error"]})


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
