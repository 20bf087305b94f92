"""Reviews in the administration: leads and administrators decide, who may only look does not."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from reviews.models import Review
from reviews.services import review_approve, review_raise
from tests.reviews import fakes
from tests.reviews.conftest import Ask, facts, person

LIST = "/admin/reviews/review/"

In = Callable[[User], Client]


@pytest.fixture
def signed_in() -> In:
    """Return a function that signs somebody in, in a browser of their own."""

    def sign_in(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return sign_in


def page(review: Review) -> str:
    """Return where the review's page is."""
    return reverse("admin:reviews_review_change", args=[review.pk])


def route(review: Review, decision: str) -> str:
    """Return where a decision is posted."""
    return reverse("admin:reviews_review_decide", args=[review.pk, decision])


def said(response: Any) -> list[str]:
    """Return the messages that the next page shows."""
    return [str(message) for message in get_messages(response.wsgi_request)]


def test_a_lead_sees_the_list_and_the_card(ask: Ask, lea: User, signed_in: In) -> None:
    review = ask()
    client = signed_in(lea)
    listed = client.get(LIST).content.decode()
    for text in ("Refund 25.00 EUR to Ana Silva", "Ana Agent", "7 h 59 min left", "Approve the"):
        assert text in listed
    shown = client.get(page(review)).content.decode()
    for text in ("Approve 25.00 EUR", "Approve with changes", "Reject", "damaged"):
        assert text in shown
    assert str(review.run_id) not in shown
    assert review.subject_hash not in shown


def test_a_lead_approves_on_the_page(ask: Ask, lea: User, signed_in: In) -> None:
    review = ask()
    response = signed_in(lea).post(route(review, "approve"), {"version": "1", "note": "fine"})
    assert (response.status_code, response.headers["Location"]) == (302, page(review))
    review.refresh_from_db()
    assert (review.state, review.decided_by, review.note) == ("approved", lea, "fine")
    assert review.decisions.get().channel == "admin"


def test_an_administrator_approves_less(ask: Ask, signed_in: In, db: None) -> None:
    boss = person("boss", is_superuser=True)
    fakes.SCOPES[boss.pk] = frozenset()
    review = ask()
    posted = {"version": "1", "amount": "10.00", "reason": "damaged"}
    assert signed_in(boss).post(route(review, "change"), posted).status_code == 302
    review.refresh_from_db()
    assert (review.state, review.amount_minor, review.changes) == (
        "approved",
        1000,
        {"amount": "10.00"},
    )


def test_an_approval_with_changes_that_changes_nothing_is_refused_in_the_administration(
    ask: Ask, lea: User, signed_in: In
) -> None:
    review = ask()
    before = facts(review)
    posted = {"version": "1", "amount": "25.00", "reason": "damaged"}
    response = signed_in(lea).post(route(review, "change"), posted)
    assert response.status_code == 422
    assert b"Nothing was changed." in response.content
    assert facts(review) == before


def test_a_rejection_has_a_sentence_and_a_note(ask: Ask, lea: User, signed_in: In) -> None:
    review = ask()
    client = signed_in(lea)
    refused = client.post(route(review, "reject"), {"version": "1", "sentence": "", "note": "kept"})
    assert refused.status_code == 422
    assert b"Write a sentence for the person who asked." in refused.content
    assert b"kept" in refused.content
    review.refresh_from_db()
    assert review.state == "pending"
    client.post(route(review, "reject"), {"version": "1", "sentence": "Not ours.", "note": "?"})
    review.refresh_from_db()
    assert (review.state, review.sentence, review.note) == ("rejected", "Not ours.", "?")


@pytest.mark.parametrize("amount", ["abc", "", "7,50", "99.00", "1e1x"])
def test_b03_an_amount_that_is_none_is_refused_in_the_form_with_what_was_typed(
    ask: Ask, lea: User, signed_in: In, amount: str
) -> None:
    review = ask()
    before = facts(review)
    posted = {"version": "1", "amount": amount, "reason": "box damaged"}
    response = signed_in(lea).post(route(review, "change"), posted)
    assert response.status_code == 422
    assert b"errorlist" in response.content
    assert b"box damaged" in response.content
    assert facts(review) == before
    assert review.decisions.get().refused_because == "review.change_refused"


@pytest.mark.parametrize("decision", ["approve", "change", "raise"])
def test_b03_a_forged_field_is_refused_and_audited(
    ask: Ask, lea: User, signed_in: In, decision: str
) -> None:
    review = ask()
    before = facts(review)
    posted = {"version": "1", "amount": "1.00", "payment": "PAY-2", "tool": "charge_make"}
    response = signed_in(lea).post(route(review, decision), posted)
    assert response.status_code == 422
    assert b"Only the amount and the reason of a request can be changed." in response.content
    assert facts(review) == before
    assert review.decisions.get().changes["payment"] == "PAY-2"


def test_a_reject_with_an_amount_in_it_never_approves(ask: Ask, lea: User, signed_in: In) -> None:
    review = ask()
    posted = {"version": "1", "amount": "1.00", "sentence": "No."}
    signed_in(lea).post(route(review, "reject"), posted)
    review.refresh_from_db()
    assert (review.state, review.amount_minor) == ("rejected", 2500)


def test_b30_a_double_click_and_a_second_tab_are_told_who_decided(
    ask: Ask, lea: User, leo: User, signed_in: In
) -> None:
    review = ask()
    first, second = signed_in(lea), signed_in(leo)
    first.post(route(review, "approve"), {"version": "1"})
    before = facts(review)
    again = first.post(route(review, "approve"), {"version": "1"})
    late = second.post(route(review, "reject"), {"version": "1", "sentence": "No."})
    assert again.status_code == late.status_code == 302
    assert said(late)[0].startswith("Lea Lead approved this on ")
    assert facts(review) == before
    assert [(review.pk, "approved")] == fakes.TOLD
    assert review.decisions.filter(accepted=False).count() == 2


def test_b54_who_asked_is_refused_on_the_page_and_told_why(
    ask: Ask, lea: User, signed_in: In
) -> None:
    review = ask(requester=lea)
    before = facts(review)
    client = signed_in(lea)
    shown = client.get(page(review)).content.decode()
    assert "You asked for this yourself" in shown
    assert "Approve 25.00 EUR</button>" not in shown
    response = client.post(route(review, "approve"), {"version": "1", "requested_by": "1"})
    assert response.status_code == 403
    assert b"You asked for this yourself" in response.content
    assert facts(review) == before


def test_a_version_raised_meanwhile_is_not_approved_unseen(
    ask: Ask, lea: User, leo: User, signed_in: In
) -> None:
    review = ask()
    review_raise(review_id=review.pk, actor=leo, channel="desk", changes={"amount": "90.00"})
    response = signed_in(lea).post(route(review, "approve"), {"version": "1"})
    assert response.status_code == 422
    assert b"It now reads: Refund 90.00 EUR to Ana Silva" in response.content
    review.refresh_from_db()
    assert review.state == "pending"


def chosen(action: str, *reviews: Review, **more: str) -> dict[str, Any]:
    """Return what the list posts."""
    return {"action": action, "_selected_action": [str(r.pk) for r in reviews], **more}


def test_b54_the_list_action_shows_each_then_counts_what_passed_and_what_not(
    ask: Ask, lea: User, leo: User, signed_in: In
) -> None:
    own, gone, good = ask(requester=lea), ask(), ask()
    review_approve(review_id=gone.pk, actor=leo, channel="desk")
    client = signed_in(lea)
    summary = client.post(LIST, chosen("approve_chosen", own, gone, good))
    assert summary.status_code == 200
    assert summary.content.decode().count("Refund 25.00 EUR to Ana Silva") == 3
    assert Review.objects.filter(state="pending").count() == 2
    versions = {f"version_{r.pk}": "1" for r in (own, gone, good)}
    done = client.post(LIST, chosen("approve_chosen", own, gone, good, confirmed="yes", **versions))
    texts = said(done)
    assert texts[0] == "1 of 3 approved."
    assert len(texts) == 4
    assert sum("You asked for this yourself" in text for text in texts) == 1
    assert sum("Leo Lead approved this" in text for text in texts) == 1
    assert sum("Lea Lead approved this" in text for text in texts) == 1
    states = dict(Review.objects.values_list("pk", "state"))
    assert states == {own.pk: "pending", gone.pk: "approved", good.pk: "approved"}


def test_reviews_of_different_rules_are_not_approved_together(
    ask: Ask, lea: User, signed_in: In
) -> None:
    one, two = ask(), ask()
    Review.objects.filter(pk=two.pk).update(rule="refund.above_limit")
    versions = {f"version_{r.pk}": "1" for r in (one, two)}
    for more in ({}, {"confirmed": "yes", **versions}):
        done = signed_in(lea).post(LIST, chosen("approve_chosen", one, two, **more))
        assert done.status_code == 302
        (text,) = said(done)
        assert text.startswith("These were asked for by different rules.")
    assert Review.objects.filter(state="pending").count() == 2


def test_the_list_action_rejects_with_one_sentence(ask: Ask, lea: User, signed_in: In) -> None:
    first, second = ask(), ask()
    client = signed_in(lea)
    blank = client.post(LIST, chosen("reject_chosen", first, second, confirmed="yes", sentence=" "))
    assert b"Write a sentence for the people who asked." in blank.content
    assert Review.objects.filter(state="pending").count() == 2
    more = {"confirmed": "yes", **{f"version_{r.pk}": "1" for r in (first, second)}}
    done = client.post(LIST, chosen("reject_chosen", first, second, sentence="No.", **more))
    assert said(done)[0] == "2 of 2 rejected."
    assert set(Review.objects.values_list("state", "sentence")) == {("rejected", "No.")}


def test_a_version_raised_after_the_summary_is_left_out(
    ask: Ask, lea: User, leo: User, signed_in: In
) -> None:
    review = ask()
    review_raise(review_id=review.pk, actor=leo, channel="desk", changes={"amount": "90.00"})
    more = {"confirmed": "yes", f"version_{review.pk}": "1"}
    done = signed_in(lea).post(LIST, chosen("approve_chosen", review, **more))
    assert said(done)[0] == "0 of 1 approved."
    review.refresh_from_db()
    assert review.state == "pending"


@pytest.mark.parametrize("version", [None, "", "x", "²", "1" * 5000])
def test_the_list_decides_nothing_whose_version_it_did_not_show(
    ask: Ask, lea: User, signed_in: In, version: str | None
) -> None:
    review = ask()
    more = {} if version is None else {f"version_{review.pk}": version}
    for action, sentence in (("approve_chosen", ""), ("reject_chosen", "No.")):
        posted = chosen(action, review, confirmed="yes", sentence=sentence, **more)
        texts = said(signed_in(lea).post(LIST, posted))
        assert texts[0].startswith("0 of 1 ")
        assert "This request was changed since you opened it." in texts[1]
    review.refresh_from_db()
    assert review.state == "pending"


@pytest.mark.parametrize("version", [None, "", "x", "²", "1" * 5000])
@pytest.mark.parametrize("decision", ["approve", "change", "raise", "reject"])
def test_a_page_that_shows_no_version_decides_nothing(
    ask: Ask, lea: User, signed_in: In, decision: str, version: str | None
) -> None:
    review = ask()
    before = facts(review)
    posted = {"sentence": "No."} if decision == "reject" else {"amount": "10.00"}
    if version is not None:
        posted["version"] = version
    response = signed_in(lea).post(route(review, decision), posted)
    assert response.status_code == 422
    assert b"This request was changed since you opened it." in response.content
    assert b'name="version" value="1"' in response.content
    assert facts(review) == before


@pytest.fixture(params=["view", "view+change+delete+add", "rights removed meanwhile"])
def looker(request: pytest.FixtureRequest, db: None) -> User:
    """Be somebody who may look at reviews and decide none."""
    rights = ["view_review"]
    if "change" in request.param:
        rights += ["change_review", "delete_review", "add_review"]
    user = person("looker", *rights)
    if "removed" in request.param:
        right = Permission.objects.get(codename="decide_review")
        user.user_permissions.add(right)
        user.user_permissions.remove(right)
    return user


def test_b27_who_may_only_look_is_refused_on_every_route_and_the_try_is_kept(
    ask: Ask, looker: User, signed_in: In, caplog: pytest.LogCaptureFixture
) -> None:
    review = ask()
    before = facts(review)
    client = signed_in(looker)
    listed, shown = client.get(LIST).content.decode(), client.get(page(review)).content.decode()
    for action in ("approve_chosen", "reject_chosen", "delete_selected", 'name="action"'):
        assert action not in listed
    for text in ("Approve", "Reject", 'type="submit" class="button"', "deletelink"):
        assert text not in shown
    caplog.set_level(logging.INFO, "reviews")
    confirmed = {"confirmed": "yes", "sentence": "No."}
    posts: list[tuple[str, dict[str, Any]]] = [
        (route(review, "approve"), {"version": "1"}),
        (route(review, "change"), {"version": "1", "amount": "1.00"}),
        (route(review, "raise"), {"version": "1", "amount": "90.00"}),
        (route(review, "reject"), {"version": "1", "sentence": "No."}),
        (route(review, "withdraw"), {"version": "1"}),
        (LIST, chosen("approve_chosen", review, **confirmed)),
        (LIST, chosen("reject_chosen", review, **confirmed)),
        (LIST, chosen("delete_selected", review, post="yes")),
        (page(review), {"state": "approved", "_save": "Save"}),
        (f"{LIST}{review.pk}/delete/", {"post": "yes"}),
        (f"{LIST}add/", {"title": "x"}),
    ]
    for address, posted in posts:
        assert client.post(address, posted).status_code == 403, address
    assert client.get(route(review, "approve")).status_code == 405
    assert facts(review) == before
    assert fakes.TOLD == []
    kept = review.decisions.values_list("actor__username", "accepted", "refused_because")
    assert list(kept) == [("looker", False, "review.no_right")] * 7
    assert sum(r.message == "review.admin_refused" for r in caplog.records) == 9
    assert sum(r.message == "review.delete_refused" for r in caplog.records) == 1


def test_b27_delete_of_a_decided_review_is_impossible_even_for_a_superuser(
    ask: Ask, lea: User, signed_in: In
) -> None:
    review = review_approve(review_id=ask().pk, actor=lea, channel="desk")
    client = signed_in(person("boss", is_superuser=True))
    assert client.post(f"{LIST}{review.pk}/delete/", {"post": "yes"}).status_code == 403
    client.post(LIST, chosen("delete_selected", review, post="yes"))
    assert client.post(page(review), {"state": "pending", "_save": "Save"}).status_code == 403
    assert client.post(f"{LIST}add/", {"title": "x"}).status_code == 403
    review.refresh_from_db()
    assert review.state == "approved"


def test_another_teams_review_is_not_found(
    ask: Ask, olga: User, signed_in: In, caplog: pytest.LogCaptureFixture
) -> None:
    review = ask()
    client = signed_in(olga)
    caplog.set_level(logging.INFO, "reviews")
    assert "Ana Silva" not in client.get(LIST).content.decode()
    assert client.get(page(review)).status_code == 404
    assert client.get(f"{LIST}{review.call_id}/change/").status_code == 404
    assert client.get(f"{LIST}nonsense/change/").status_code == 404
    assert client.post(route(review, "approve"), {"version": "1"}).status_code == 404
    review.refresh_from_db()
    assert review.state == "pending"
    assert sum(r.message == "scope.denied" for r in caplog.records) == 4


def test_who_has_no_right_at_all_does_not_get_in(ask: Ask, ana: User, signed_in: In) -> None:
    review = ask()
    client = signed_in(ana)
    assert client.get(LIST).status_code == 403
    assert client.get(page(review)).status_code == 403
    assert Client().get(page(review)).status_code == 302
    assert Client().post(route(review, "approve"), {"version": "1"}).status_code == 302
    review.refresh_from_db()
    assert (review.state, review.decisions.count()) == ("pending", 0)


def test_opening_the_page_is_logged(
    ask: Ask, lea: User, signed_in: In, caplog: pytest.LogCaptureFixture
) -> None:
    review = ask()
    caplog.set_level(logging.INFO, "reviews")
    signed_in(lea).get(page(review))
    opened = [vars(r) for r in caplog.records if r.message == "review.opened"]
    assert [(r["review"], r["actor"]) for r in opened] == [(str(review.pk), lea.pk)]


def test_b41_script_in_the_card_and_the_title_is_text(ask: Ask, lea: User, signed_in: In) -> None:
    review = ask(reason="<script>alert(1)</script>")
    evil = "<img src=x onerror=alert(1)>"
    Review.objects.filter(pk=review.pk).update(title=evil, card=[{"label": evil, "text": evil}])
    client = signed_in(lea)
    summary = chosen("approve_chosen", review)
    for response in (client.get(LIST), client.get(page(review)), client.post(LIST, summary)):
        text = response.content.decode()
        assert evil not in text
        assert "<script>alert(1)" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;" in text
