"""The journeys of the people at the desk, through a real browser, worker and processor."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PATIENCE, Enter

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(240)]

FIND = "find good-card@example.com"
AHEAD = 4
"""Answers that are written word by word before the line reaches what the test changes."""

LIVE_REGION_CHANGES = """() => {
  window.additions = 0;
  const log = document.getElementById("transcript");
  const silent = (node) => node.parentElement?.closest("[aria-live=off]") ||
    node.matches?.("[aria-live=off]");
  new MutationObserver((changes) => {
    for (const change of changes)
      for (const node of change.addedNodes)
        if (node.nodeType === 1 && !silent(node)) window.additions += 1;
  }).observe(log, { childList: true, subtree: true });
}"""


def begin(page: Page, text: str) -> None:
    """Start a conversation with a message, by the keyboard."""
    page.goto("/")
    page.get_by_label("New conversation").fill(text)
    page.keyboard.press("Enter")
    page.wait_for_url("**/c/*/")


def say(page: Page, text: str) -> None:
    """Send one more message, by the keyboard."""
    page.get_by_label("Message to the assistant").fill(text)
    page.keyboard.press("Enter")


def answers(page: Page) -> Locator:
    """Return the finished answers of the assistant."""
    return page.locator("#transcript .message--assistant")


def line_of(page: Page, place: int) -> Locator:
    """Return the work that belongs to a message, by its place among the staff member's own."""
    return page.locator("#transcript .message--staff").nth(place).locator("+ .work")


def test_a_refund_is_approved_by_the_lead_while_the_agent_watches(enter: Enter) -> None:
    agent, lead = enter("agent"), enter("lead")
    begin(agent, "find yen@example.com")
    expect(answers(agent)).to_have_count(1)
    agent.evaluate(LIVE_REGION_CHANGES)
    say(agent, "refund 500 JPY of the last payment of yen@example.com because the box was crushed")

    card = agent.locator(".card", has_text="Refund 500 JPY to 山田 花子")
    expect(card).to_contain_text("Waiting for approval")
    expect(card).to_contain_text("You asked for this, so a colleague decides.")
    expect(card.get_by_role("button", name="Approve")).to_have_count(0)
    expect(agent.get_by_label("Message to the assistant")).to_be_focused()

    lead.goto("/reviews/")
    lead.get_by_role("link", name="Refund 500 JPY to 山田 花子").click()
    expect(lead.locator(".card")).to_contain_text("Goes back to Visa ending in 0006")
    approve = lead.get_by_role("button", name="Approve 500 JPY")
    expect(approve).not_to_be_focused()
    approve.focus()
    lead.keyboard.press("Enter")
    expect(lead.locator("#result")).to_contain_text("Maria Lopes approved this")
    expect(lead.locator(".card")).to_contain_text("The processor has confirmed it.")

    expect(card).to_contain_text("Maria Lopes approved this")
    expect(answers(agent).last).to_contain_text(re.compile(r"^[\s\S]*REF-\w+: 500 JPY of PAY-"))
    stop = answers(agent).last.locator(".stop")
    expect(stop).to_contain_text("Stopped: everything asked for is done")
    expect(stop).to_contain_text(re.compile(r"made, 1 saved \([\d,]+ tokens\)"))
    expect(agent.get_by_label("Message to the assistant")).to_be_focused()
    # The page grew card by card; who was at its end is still there.
    expect(stop).to_be_in_viewport()
    # Question and answer; the work between them is told by the status line.
    assert agent.evaluate("window.additions") <= 3

    answers(agent).last.get_by_role("link", name=re.compile("^REF-")).click()
    expect(agent.get_by_role("heading", name="Refund receipt", level=1)).to_be_visible()
    expect(agent.locator(".total").first).to_have_text(re.compile(r"Refunded\s*500 JPY"))


def test_a_reload_in_mid_answer_and_while_a_review_waits_loses_nothing(enter: Enter) -> None:
    agent, lead = enter("agent"), enter("lead")
    begin(agent, "find good-card@example.com")
    half = agent.locator("#live .message-text")
    expect(half).to_contain_text("Ana Silva")
    before = half.inner_text()
    agent.reload()
    restored = agent.locator("#live .message-text, #transcript .message--assistant .message-text")
    expect(restored.first).to_contain_text(before.strip()[:40])
    expect(answers(agent)).to_have_count(1)
    expect(half).to_have_count(0)
    assert answers(agent).inner_text().count("Ana Silva, good-card@example.com") == 1

    say(agent, "refund 3.00 EUR of the last payment of good-card@example.com because it is torn")
    card = agent.locator(".card", has_text="Refund 3.00 EUR to Ana Silva")
    expect(card).to_contain_text("Waiting for approval")
    agent.reload()
    expect(card).to_contain_text("Waiting for approval")
    say(agent, "find good-card@example.com")
    expect(answers(agent)).to_have_count(2)
    expect(card).to_contain_text("Waiting for approval")

    phone = enter("agent", viewport={"width": 320, "height": 640})
    phone.goto(agent.url)
    expect(phone.locator(".card", has_text="Refund 3.00 EUR")).to_contain_text("Waiting")

    lead.goto("/reviews/")
    lead.get_by_role("link", name="Refund 3.00 EUR to Ana Silva").click()
    lead.get_by_text("Reject…").click()
    lead.get_by_label("Reason").last.select_option(
        "Please ask the customer for a photo or a receipt first."
    )
    told = lead.locator(".told")
    expect(told).to_contain_text("Please ask the customer for a photo or a receipt first.")
    lead.get_by_role("button", name="Reject", exact=True).click()
    expect(lead.locator("#result")).to_contain_text("Maria Lopes rejected this")

    for page in (agent, phone):
        expect(answers(page)).to_have_count(3)
        expect(answers(page).last).to_contain_text("to: “refund 3.00 EUR of the last payment")
        expect(answers(page).last).to_contain_text("rejected by Maria Lopes. Nothing was done.")
        expect(answers(page).last).to_contain_text("Please ask the customer for a photo")


def test_a_broken_line_is_said_and_keeps_what_was_typed(enter: Enter) -> None:
    agent = enter("agent")
    begin(agent, "find good-card@example.com")
    expect(answers(agent)).to_have_count(1)
    agent.context.set_offline(True)
    expect(agent.locator("#line-lost")).to_contain_text("Connection lost at")
    say(agent, "find declined@example.com")
    expect(agent.locator("#composer-error")).to_contain_text("The desk did not answer.")
    field = agent.get_by_label("Message to the assistant")
    expect(field).to_have_value("find declined@example.com")
    agent.context.set_offline(False)
    expect(agent.locator("#line-lost")).to_be_hidden()
    # A closed tab keeps the draft, too.
    agent.reload()
    expect(field).to_have_value("find declined@example.com")
    field.focus()
    agent.keyboard.press("Enter")
    expect(answers(agent)).to_have_count(2)
    expect(field).to_have_value("")


def test_a_sign_in_in_another_tab_is_said_and_keeps_what_was_typed(enter: Enter) -> None:
    agent = enter("agent")
    begin(agent, "find good-card@example.com")
    expect(answers(agent)).to_have_count(1)
    # What a new sign-in does to a page that is open: its forms carry the token of before.
    agent.evaluate(
        "document.querySelector('#composer [name=csrfmiddlewaretoken]').value = 'x'.repeat(64)"
    )
    say(agent, "find yen@example.com")
    expect(agent.locator("#composer-error")).to_contain_text(
        "You signed in again in another tab. Reload this page; what you typed is kept"
    )
    agent.reload()
    field = agent.get_by_label("Message to the assistant")
    expect(field).to_have_value("find yen@example.com")
    field.press("Enter")
    expect(answers(agent)).to_have_count(2)


def test_a_charge_ends_with_a_receipt_that_can_be_opened(enter: Enter) -> None:
    agent = enter("agent")
    begin(agent, "charge invoice INV-1001 of good-card@example.com")
    answer = answers(agent).last
    expect(answer).to_contain_text(re.compile(r"PAY-\w+: 25\.00 EUR was charged to Ana Silva"))
    saved = re.compile(r"1 model call made, 1 saved \([\d,]+ tokens\)")
    expect(answer.locator(".stop")).to_contain_text(saved)
    answer.get_by_role("link", name="The run in full").click()
    expect(agent.get_by_role("heading", name="One run in full")).to_be_visible()
    expect(agent.locator("main")).to_contain_text("Charged the invoice")
    expect(agent.locator("main")).to_contain_text("completed · may end the request")
    agent.go_back()
    answers(agent).last.get_by_role("link", name=re.compile("^PAY-")).click()
    expect(agent.get_by_role("heading", name="Receipt", level=1)).to_be_visible()
    expect(agent.locator(".total").first).to_have_text(re.compile(r"Paid\s*25\.00 EUR"))
    expect(agent.get_by_role("link", name="INV-1001")).to_be_visible()
    agent.emulate_media(media="print")
    expect(agent.locator(".bar")).to_be_hidden()


def test_an_export_goes_from_progress_to_a_file(enter: Enter) -> None:
    agent = enter("agent")
    begin(agent, "export payments of last month as CSV")
    card = agent.locator(".card[data-export-state]")
    expect(card).to_have_attribute("data-export-state", "ready")
    rows = int(re.match(r"\s*(\d+) rows", card.locator(".card-progress").inner_text())[1])  # type: ignore[index]
    assert rows > 50
    agent.reload()
    expect(card).to_contain_text("The file can be downloaded until")
    with agent.expect_download() as fetched:
        card.get_by_role("link", name=re.compile("^Download EXP-")).click()
    lines = fetched.value.path().read_text("utf-8-sig").splitlines()
    assert len(lines) == rows + 1
    assert fetched.value.suggested_filename.endswith(".csv")


def test_a_refusal_by_rule_and_a_customer_not_found_are_said_in_words(enter: Enter) -> None:
    agent = enter("agent")
    begin(agent, "refund the last payment of disputed@example.com")
    expect(answers(agent).last).to_contain_text("disputed")
    expect(answers(agent).last).to_contain_text("Stopped: a rule or a person refused")
    expect(agent.locator(".call", has_text="refused by rule")).to_have_count(1)
    expect(agent.locator("[id^=review-]")).to_have_count(0)

    texts = []
    for email in ("other-team@example.com", "nobody-at-all@example.com"):
        begin(agent, f"find {email}")
        expect(answers(agent).last.locator(".stop-line")).to_be_visible()
        texts.append(answers(agent).last.locator(".message-text").inner_text().replace(email, "X"))
    # Another team's customer reads like nobody at all.
    assert texts[0] == texts[1]
    assert "No customer was found" in texts[0]


def test_every_page_reflows_at_320_pixels_and_has_targets_to_hit(enter: Enter) -> None:
    lead = enter("lead", viewport={"width": 320, "height": 640}, color_scheme="dark")
    begin(lead, "find good-card@example.com")
    expect(answers(lead)).to_have_count(1)
    chat = lead.url
    run = answers(lead).get_by_role("link", name="The run in full").get_attribute("href")
    for address in (
        "/",
        chat,
        run,
        "/reviews/",
        "/tickets/",
        "/articles/",
        "/documents/PAY-10012/",
    ):
        lead.goto(str(address))
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert lead.evaluate(wide) == 0, address
        small = lead.evaluate(
            """() => [...document.querySelectorAll("button, summary, input, textarea, nav a, .row")]
              .filter((target) => target.checkVisibility() && target.type !== "hidden")
              .map((target) => [target.outerHTML.slice(0, 80), target.getBoundingClientRect()])
              .filter(([, box]) => box.height < 24 || box.width < 24)
              .map(([html]) => html)"""
        )
        assert small == [], address


def test_what_waits_is_changed_and_removed_and_nothing_typed_is_lost(enter: Enter) -> None:
    agent = enter("agent")
    mine = agent.locator("#transcript .message--staff")
    begin(agent, FIND)
    for text in [*[FIND] * (AHEAD - 1), "find nobody@example.com", "find declined@example.com"]:
        say(agent, text)
        expect(mine.last).to_contain_text(text)
        expect(agent.get_by_label("Message to the assistant")).to_have_value("")
    say(agent, "find other@example.com")
    changed, removed, late = (line_of(agent, AHEAD + place) for place in range(3))
    expect(late).to_contain_text("waits until the present request is done")
    other = agent.context.new_page()
    other.goto(agent.url)

    # Changed by the keyboard; the other tab sees it.
    edit = changed.locator("summary", has_text="Edit")
    edit.focus()
    agent.keyboard.press("Enter")
    field = changed.get_by_label("Your message")
    expect(field).to_be_focused()
    field.fill("find yen@example.com")
    agent.keyboard.press("Enter")
    expect(mine.nth(AHEAD)).to_contain_text(re.compile("find yen@example.com[\\s\\S]*Changed at"))
    expect(edit).to_be_focused()
    expect(other.locator("#transcript .message--staff").nth(AHEAD)).to_contain_text("yen@")

    # Removed; nothing of it is left to press, and the focus is where one goes on.
    removed.get_by_role("button", name="Remove").click()
    expect(mine.nth(AHEAD + 1)).to_contain_text("You removed this message before")
    expect(removed.get_by_role("button")).to_have_count(0)
    expect(agent.get_by_label("Message to the assistant")).to_be_focused()
    expect(other.locator("#transcript .message--staff").nth(AHEAD + 1)).to_contain_text("removed")

    # Typed until its turn came: it goes on in the composer.
    late.locator("summary", has_text="Edit").click()
    late.get_by_label("Your message").fill("something I have thought about")
    composer = agent.get_by_label("Message to the assistant")
    expect(composer).to_have_value("something I have thought about", timeout=3 * PATIENCE)
    expect(agent.locator("#composer-error")).to_contain_text("no longer waits in line")
    expect(composer).to_be_focused()

    expect(answers(agent)).to_have_count(AHEAD + 2, timeout=3 * PATIENCE)
    told = "\n".join(answers(agent).all_inner_texts())
    assert "yen@example.com" in told
    assert "declined@example.com" not in told
    assert "nobody@example.com" not in told
