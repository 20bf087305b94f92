"""Polishing: which rewrites state the same facts, and what the graph does in each stop mode."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls, fails, says
from agent_core.graph import graph_compile
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import PROBES, RIGHT
from agent_core.host import Parts
from agent_core.polish import facts_survive
from agent_core.toolset import Toolset

REFUND = "5.00 EUR of PAY-7KX2M9QD was refunded. Its reference is REF-23456789."
TWO = "PAY-1: 5.00 EUR refunded.\nPAY-2: 7.00 EUR not refunded."


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (REFUND, REFUND),
        (REFUND, f"Good news: {REFUND}"),
        (REFUND, f"Hello.\n\n{REFUND}\n\nThank you!"),
        (REFUND, "5.00\u00a0EUR of PAY-7KX2M9QD was refunded; its reference is REF-23456789"),
        ("Receipt for T-1: 5.00 EUR.", "Here you go. Here is the receipt for T-1: 5.00 EUR."),
        ("The receipt is ready.", "Good to know: receipt is ready!"),
        ("Ana's card was not charged.", "I'm sorry, Ana\u2019s card was not charged."),
        ("Nothing was charged.", "Sorry, nothing was charged."),
        (TWO, "- PAY-1: 5.00 EUR refunded\n- **PAY-2**: 7.00 EUR not refunded"),
    ],
)
def test_a_rewrite_with_the_same_facts_is_kept(before: str, after: str) -> None:
    assert facts_survive(before, after)
    assert facts_survive(after, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Amounts, references, dates and other figures.
        ("Refunded 5.00 EUR.", "Refunded 15.00 EUR."),
        ("Refunded 5.00 EUR.", "Refunded 5.00 USD."),
        ("Refunded 5.00 EUR.", "Refunded 5.00."),
        ("Refunded 5.00 EUR.", "Refunded -5.00 EUR."),
        ("Refunded:\n- 5.00 EUR.", "Refunded:\n5.00 EUR."),
        ("Refunded 5.00 EUR.", "Refunded (5.00 EUR)."),
        ("Refunded 5.00 EUR.", "Refunded ~5.00 EUR."),
        ("Refunded 5.00 EUR.", "Refunded ~~5.00 EUR~~."),
        ("Refunded 5.00 EUR.", "Refunded 5.00 EUR?"),
        ("Refunded 5.00 EUR.", "Refunded \u20ac5.00."),
        ("Refunded 5.00 EUR.", "Refunded 5.00 EUR and 5.00 EUR."),
        ("5,000 EUR", "5.000 EUR"),
        ("5 % off", "5 EUR off"),
        ("Half of it.", "All of it."),
        ("Ticket TIC-12 is open.", "Ticket TIC-123 is open."),
        ("Ticket TIC-12 is open.", "Ticket tic-12 is open."),
        ("It is for 2026-11-30.", "It is for 2026-11-03."),
        # Anything added.
        (REFUND, f"{REFUND} 500.00 EUR follows tomorrow."),
        (REFUND, f"{REFUND} The rest follows tomorrow."),
        (REFUND, f"{REFUND} Another hundred euros are on their way."),
        (REFUND, f"{REFUND} It was not charged."),
        (REFUND, f"{REFUND} Please ring the number in the other mail and give the code."),
        (REFUND, f"{REFUND} The customer agreed to it."),
        (REFUND, REFUND.replace("was refunded", "was charged")),
        (REFUND, REFUND.replace("was refunded", "will be refunded")),
        (REFUND, REFUND.replace(" was refunded", " was refunded to Ana")),
        (REFUND, f"<think>Sure.</think>{REFUND}"),
        (REFUND, f"![seen](https://example.com/p.png) {REFUND}"),
        # Who, and to whom.
        ("Ana was refunded.", "Bob was refunded."),
        ("Ana was refunded.", "Ana refunded."),
        ("Ana paid 5.00 EUR.", "We paid Ana 5.00 EUR."),
        ("We owe you 5.00 EUR.", "You owe us 5.00 EUR."),
        ("The bank paid the shop.", "The shop paid the bank."),
        ("Moved from PAY-1 to Ana.", "Moved from Ana to PAY-1."),
        ("Paid back to the customer.", "Paid back to the merchant."),
        ("Kontakt an maria geht raus.", "Kontakt an peter geht raus."),
        ("Will was refunded.", "It will be refunded."),
        ("Mark was refunded.", "It was refunded."),
        ("An was refunded.", "It was refunded."),
        ("\u738b\u4f1f was refunded.", "\u674e\u5a1c was refunded."),
        ("It went to ana@example.com.", "It went to bob@example.com."),
        # Whether, by when and how much.
        ("It was not refunded.", "It was refunded."),
        ("It was not refunded.", "It was not, not refunded."),
        ("It wasn't refunded.", "It was refunded."),
        ("It was refunded.", "It was refunded without a fee."),
        ("It is impossible to refund.", "It is possible to refund."),
        ("The card is invalid.", "The card is valid."),
        ("It was unsuccessful.", "It was successful."),
        ("The card has expired.", "The card is active."),
        ("The limit was raised to 5 EUR.", "The limit was lowered to 5 EUR."),
        ("Refund within 3 days.", "Refund within 3 months."),
        ("It costs 5 EUR a month.", "It costs 5 EUR a year."),
        ("Refund up to 5 EUR.", "Refund over 5 EUR."),
        ("Only 5 EUR.", "At least 5 EUR."),
        ("Refund before 5 May.", "Refund after 5 May."),
        ("Ticket closed.", "Ticket reopened."),
        ("It was cancelled.", "It was reinstated."),
        ("The refund fails.", "The refund works."),
        ("It was open.", "It is open."),
        ("Der Betrag wurde nicht erstattet.", "Der Betrag wurde erstattet."),
        # Moved.
        (TWO, "PAY-1: 5.00 EUR not refunded.\nPAY-2: 7.00 EUR refunded."),
        (TWO, "PAY-1: 7.00 EUR refunded.\nPAY-2: 5.00 EUR not refunded."),
        ("PAY-1 was refunded, PAY-2 was not.", "PAY-1 was not refunded, PAY-2 was."),
        ("5.00 EUR for Ana, 7.00 EUR for Bob.", "7.00 EUR for Ana, 5.00 EUR for Bob."),
        ("PAY-1 was refunded, PAY-2 charged.", "PAY-1 was charged, PAY-2 refunded."),
        (
            "PAY-1 is open. PAY-2 is paid. It was late.",
            "PAY-2 is paid. PAY-1 is open. It was late.",
        ),
        (REFUND, ""),
    ],
)
def test_a_rewrite_that_loses_adds_or_moves_a_fact_is_not(before: str, after: str) -> None:
    assert not facts_survive(before, after)
    assert not facts_survive(after, before)


amounts = st.builds(
    "{}.{:02} {}".format, st.integers(0, 9999), st.integers(0, 99), st.sampled_from(["EUR", "USD"])
)
references = st.builds("{}-{}".format, st.sampled_from(["PAY", "TIC"]), st.integers(1, 999))
days = st.dates().map(str)
people = st.sampled_from(["Ana", "Bob", "Will", "Mark", "Zo\u00eb", "\u0141ukasz"])
facts = amounts | references | days | people
items = st.lists(facts, min_size=1, max_size=4).map(lambda found: f"It has {' and '.join(found)}")
texts = st.lists(items, min_size=1, max_size=4)


def joined(sentences: list[str]) -> str:
    return ". ".join(sentences) + "."


@given(st.text(), st.text())
def test_every_text_says_what_it_says_and_two_texts_agree_both_ways(one: str, two: str) -> None:
    assert facts_survive(one, one)
    assert facts_survive(one, two) == facts_survive(two, one)


@given(texts, st.data(), facts)
def test_a_fact_that_is_lost_added_or_exchanged_is_seen(
    sentences: list[str], data: st.DataObject, other: str
) -> None:
    at = data.draw(st.integers(0, len(sentences) - 1))
    found = sentences[at].removeprefix("It has ").split(" and ")
    chosen = data.draw(st.integers(0, len(found) - 1))

    def with_facts(facts: list[str]) -> str:
        item = f"It has {' and '.join(facts)}"
        return joined([*sentences[:at], item, *sentences[at + 1 :]])

    before = joined(sentences)
    assert facts_survive(before, before.replace("It has", "Good news: it has"))
    assert not facts_survive(before, with_facts([*found, other]))
    assert not facts_survive(before, with_facts(found[:chosen] + found[chosen + 1 :]))
    if found[chosen] != other:
        assert not facts_survive(before, with_facts([*found[:chosen], other, *found[chosen + 1 :]]))


WORDS = ("valid", "expired", "raised", "within", "up", "over", "days", "the", "bank", "paid", "Ana")


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.data())
def test_no_word_goes_comes_or_moves_unless_it_is_on_the_list(
    words: list[str], data: st.DataObject
) -> None:
    """Whatever the word means: nobody could list all that carry meaning."""
    other = data.draw(st.lists(st.sampled_from(WORDS), max_size=6) | st.permutations(words))
    kept = [word for word in words if word != "the"] == [word for word in other if word != "the"]
    assert facts_survive(f"It: {' '.join(words)}.", f"It: {' '.join(other)}.") == kept


@given(st.lists(items, min_size=2, max_size=4, unique=True), st.data())
def test_a_denial_that_moves_is_seen(sentences: list[str], data: st.DataObject) -> None:
    places = st.integers(0, len(sentences) - 1)
    one, two = data.draw(st.lists(places, min_size=2, max_size=2, unique=True))

    def denied(at: int) -> str:
        denial = sentences[at].replace("It has", "It has not")
        return joined([*sentences[:at], denial, *sentences[at + 1 :]])

    assert facts_survive(denied(one), denied(one))
    assert not facts_survive(denied(one), denied(two))
    assert not facts_survive(denied(one), joined(sentences))


# The modes, on the graph that the product runs

RECEIPT = "Receipt for T-1: 5.00 EUR."
AGAIN = "Nothing more to do."


def probe(*names: str, **more: str) -> ScriptedStep:
    return calls(*((name, {"thing": "T-1", **more}) for name in names))


class Turn:
    """One turn on the explicit graph, played from a script."""

    def __init__(self, mode: str, *steps: ScriptedStep, limits: Limits | None = None) -> None:
        self.host = MemoryHost(context_make(RIGHT))
        self.model = ScriptedModel(steps=list(steps))
        parts = Parts(
            host=self.host,
            model=self.model,
            toolset=Toolset(PROBES),
            limits=limits or Limits(),
            stop_mode=mode,
        )
        graph = graph_compile(InMemorySaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        graph.invoke({}, config, context=parts)
        self.state = graph.get_state(config).values
        (self.end,) = self.host.ends

    def counts_agree(self) -> bool:
        """Tell whether script, usage rows, state and stop record count the same model calls."""
        numbers = [usage.number for usage in self.host.usages]
        made = self.end.model_calls_made
        tokens = sum(usage.input_tokens + usage.output_tokens for usage in self.host.usages)
        return (
            numbers == list(range(1, made + 1))
            and len(self.model.requests) == made == self.state["model_calls"]
            and self.state["tokens"] == tokens
        )


def test_a_good_rewrite_is_shown_and_its_call_is_counted() -> None:
    text = "Here is the receipt for T-1: 5.00 EUR."
    turn = Turn("polish", probe("receipt"), says(text, tokens=(70, 9)))
    assert (turn.end.rule, turn.end.answer) == ("completed", text)
    assert turn.end.evidence["polish"] == "kept"
    assert (turn.end.model_calls_made, turn.end.model_calls_saved) == (2, 0)
    assert turn.counts_agree()
    usage = turn.host.usages[-1]
    assert (usage.input_tokens, usage.output_tokens, usage.finish_reason) == (70, 9, "stop")
    kinds = [type(message) for message in turn.model.requests[-1]]
    assert (kinds, turn.model.offered[-1]) == ([SystemMessage, HumanMessage], [])
    assert turn.host.deltas == []


@pytest.mark.parametrize(
    ("step", "note", "finish"),
    [
        (says("Here is the receipt for T-1: 15.00 EUR."), "facts lost", "stop"),
        (says(f"{RECEIPT} Please ring the number in the other mail."), "facts lost", "stop"),
        (says(""), "model failed", "stop"),
        (ScriptedStep(text=f"Here you go. {RECEIPT}", finish="length"), "model failed", "length"),
        (ScriptedStep(text=RECEIPT, finish="MAX_TOKENS"), "model failed", "MAX_TOKENS"),
        (replace(calls(("receipt", {"thing": "T-2"})), text=RECEIPT), "model failed", "tool_calls"),
        (replace(calls(("receipt", '{"thing": ')), text=RECEIPT), "model failed", "tool_calls"),
        (fails(RuntimeError("provider away")), "model failed", "error"),
        (fails(RuntimeError("cut"), text="Here is"), "model failed", "error"),
    ],
)
def test_the_text_as_it_was_is_shown_when_the_rewrite_cannot_be(
    step: ScriptedStep, note: str, finish: str
) -> None:
    turn = Turn("polish", probe("receipt"), step)
    assert (turn.end.rule, turn.end.answer) == ("completed", RECEIPT)
    assert turn.end.evidence["polish"] == note
    assert (turn.end.model_calls_made, turn.host.usages[-1].finish_reason) == (2, finish)
    assert turn.counts_agree()


@pytest.mark.parametrize(("tool", "rule"), [("decline", "fatal"), ("forbid", "policy_block")])
def test_only_a_completed_answer_is_polished(tool: str, rule: str) -> None:
    turn = Turn("polish", probe(tool))
    assert (turn.end.rule, turn.end.model_calls_made) == (rule, 1)
    assert "polish" not in turn.end.evidence


@pytest.mark.parametrize("limits", [Limits(model_calls=1), Limits(tokens=15)])
def test_nothing_is_polished_beyond_the_budget(limits: Limits) -> None:
    turn = Turn("polish", probe("receipt"), limits=limits)
    assert (turn.end.rule, turn.end.answer) == ("completed", RECEIPT)
    assert (turn.end.model_calls_made, turn.end.model_calls_saved) == (1, 1)
    assert turn.end.evidence["polish"] == "no budget"


@pytest.mark.parametrize(("tool", "rule"), [("receipt", "completed"), ("decline", "fatal")])
def test_never_goes_back_to_the_model_and_keeps_what_would_have_stopped(
    tool: str, rule: str
) -> None:
    turn = Turn("never", probe(tool), says(AGAIN))
    assert (turn.end.rule, turn.end.answer) == ("answered", AGAIN)
    assert turn.end.evidence["would_have_stopped"] == [{"rule": rule, "batch": 1}]
    assert (turn.end.model_calls_made, turn.end.model_calls_saved) == (2, 0)
    assert turn.counts_agree()


def test_never_keeps_every_batch_that_would_have_stopped() -> None:
    more = calls(("receipt", {"thing": "T-2"}))
    turn = Turn("never", probe("receipt"), more, says(AGAIN))
    assert turn.end.evidence["would_have_stopped"] == [
        {"rule": "completed", "batch": 1},
        {"rule": "completed", "batch": 2},
    ]


def test_a_policy_block_ends_the_run_in_never_too() -> None:
    turn = Turn("never", probe("receipt"), calls(("forbid", {"thing": "T-2"})))
    assert (turn.end.rule, turn.end.model_calls_made) == ("policy_block", 2)
    assert turn.end.evidence["would_have_stopped"] == [{"rule": "completed", "batch": 1}]


def test_a_budget_ends_the_run_in_never_too() -> None:
    turn = Turn("never", probe("lookup"), limits=Limits(model_calls=1))
    assert (turn.end.rule, turn.end.evidence["limit"]) == ("budget", "model_calls")


def test_a_used_up_limit_ends_a_finished_run_in_never_and_saves_nothing() -> None:
    turn = Turn("never", probe("receipt"), limits=Limits(model_calls=1))
    assert (turn.end.rule, turn.end.evidence["otherwise"]) == ("budget", "completed")
    assert turn.end.answer.endswith(f"\n\n{RECEIPT}")
    assert (turn.end.model_calls_made, turn.end.model_calls_saved) == (1, 0)
    assert turn.end.evidence["would_have_stopped"] == [{"rule": "completed", "batch": 1}]
