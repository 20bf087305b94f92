"""Nothing of an artifact reaches the provider: the raw requests of whole conversations.

The real Groq client talks to a server of our own. Tools put a mark in every place of the artifact,
of a review and of an error that has room for one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast
from uuid import UUID, uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent_core.answer import STUB
from agent_core.budget import Limits
from agent_core.chat_models import chat_model
from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, calls, says
from agent_core.contract import (
    Artifact,
    RunContext,
    Tool,
    completed,
    fatal,
    policy_block,
    transient,
)
from agent_core.graph import graph_compile
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import RIGHT
from agent_core.host import Parts
from agent_core.middleware import countersign_stack
from agent_core.policy import Proposal, ReviewProposal, Verdict, allow
from agent_core.toolset import Toolset
from tests.core.groq_server import PLAYS, GroqServer, groq_serve
from tests.core.wire import calls_sent, ids_sent, strays, unanswered

MARK: Final = "qzmark"
RECORD: Final = uuid4()

Ended = tuple[str, Artifact]


def _data() -> dict[str, Any]:
    return {
        MARK: {"deep": [{f"{MARK}-key": f"{MARK}-value"}]},
        "id": RECORD,
        "summary": f"{MARK} summary",
        "amount_minor": 500,
    }


def _look(context: RunContext, *, thing: str) -> Ended:
    """Look a thing up."""
    return f"{thing} is known.", completed(f"{MARK}.looked", stop=False, data=_data())


def _pay(context: RunContext, *, thing: str, amount: str = "") -> Ended:
    """Pay for a thing."""
    return f"{thing} is paid.", completed(f"{MARK}.paid", stop=True, data=_data())


def _slow(context: RunContext, *, thing: str) -> Ended:
    """Wait for a thing."""
    return f"{thing} is being checked.", transient(f"{MARK}.slow", data=_data())


def _decline(context: RunContext, *, thing: str) -> Ended:
    """Fail for good."""
    return f"{thing} was declined.", fatal(f"{MARK}.declined", data=_data())


def _forbid(context: RunContext, *, thing: str) -> Ended:
    """Forbid a thing."""
    return f"{thing} may not be touched.", policy_block(f"{MARK}.forbidden", data=_data())


def _crash(context: RunContext, *, thing: str) -> Ended:
    """Break on a thing."""
    raise RuntimeError(f"{MARK} {RECORD} {context.run_id} broke on {thing}")


def _odd(context: RunContext, *, thing: str) -> Ended:
    """Return an artifact that is none."""
    return f"{thing} went somehow.", cast("Artifact", {"v": 1, "reason": MARK, "data": _data()})


def _asks(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
    return Verdict(kind="review", rule=f"{MARK}.asked", text=MARK, data=_data())


def _bars(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
    return Verdict(kind="block", rule=f"{MARK}.barred", text="That is barred.", data=_data())


def _proposed(
    context: RunContext, arguments: Mapping[str, Any], facts: Mapping[str, Any]
) -> ReviewProposal:
    card = [{"label": MARK, "text": MARK}]
    return ReviewProposal(
        kind=MARK,
        subject_id=RECORD,
        subject_hash=MARK,
        title=MARK,
        button=MARK,
        card=card,
        fields={"amount": MARK},
    )


def _tool(run: Callable[..., Ended], *, reads: bool = False, **more: Any) -> Tool:
    return Tool(
        name=more.pop("name", run.__name__.lstrip("_")),
        run=run,
        doing=f"{MARK} doing",
        done=f"{MARK} done",
        right=RIGHT,
        effect=not reads,
        may_stop=not reads,
        policies=more.pop("policies", (allow,)),
        identity=None if reads else lambda _context, arguments: f"{MARK} {arguments['thing']}",
        **more,
    )


TOOLS: Final = (
    _tool(_look, reads=True),
    _tool(_pay),
    _tool(_slow),
    _tool(_decline),
    _tool(_forbid),
    _tool(_crash),
    _tool(_odd),
    _tool(_pay, name="ask", policies=(_asks,), propose=_proposed),
    _tool(_pay, name="barred", policies=(_bars,)),
)


def _one(tool: str, thing: str, **more: str) -> ScriptedCall:
    # Providers repeat their ids; ours must be the only ones that come back.
    return ScriptedCall(tool, {"thing": thing, **more}, "the-providers-own")


APPROVED: Final = {"state": "approved", "review": str(RECORD), "changes": {"amount": "4"}}
REJECTED: Final = {"state": "rejected", "review": str(RECORD), "sentence": "The lead said no."}

# What is written, what the model does, and what people decide, by the calls' things.
TURNS: Final[Sequence[tuple[str, tuple[ScriptedStep, ...]]]] = (
    ("go on, then stop", (calls(_one("look", "A"), _one("slow", "B")), calls(_one("pay", "C")))),
    ("after a stop", (calls(_one("decline", "D"), _one("look", "D")), says("D did not work."))),
    ("unclear", (calls(_one("odd", "E")), says("E is not clear."))),
    ("a review", (calls(_one("ask", "F", amount="5"), _one("look", "F")), says("F is paid."))),
    ("after a review", (calls(_one("ask", "G", amount="5")),)),
    ("after a refusal", (calls(_one("crash", "H")),)),
    ("after an error", (calls(_one("barred", "I"), _one("pay", "J")),)),
    ("after a block", (calls(_one("forbid", "K")),)),
    (
        "what does not fit",
        (
            calls(ScriptedCall("pay", '{"thing": L', "the-providers-own")),
            calls(_one("pays", "M")),
            says("I cannot do that."),
        ),
    ),
    ("a twin and a repeat", (calls(_one("pay", "N"), _one("pay", "N")),)),
    ("the end", (says("Good bye."),)),
)
STEPS: Final = [step for _words, steps in TURNS for step in steps]
DECISIONS: Final = {"F": APPROVED, "G": REJECTED}


class Host(MemoryHost):
    """A host whose window is the whole conversation, answers as stubs, artifacts and all."""

    past: Sequence[BaseMessage] = ()

    def window(self) -> list[BaseMessage]:
        return [*self.past, HumanMessage(self.words)]


def _through_the_graph(model: BaseChatModel, *, streams: bool) -> None:
    context = context_make(RIGHT)
    past: list[BaseMessage] = []
    for number, (words, _steps) in enumerate(TURNS):
        host = Host(lambda: context, words)
        host.past = past
        parts = Parts(host=host, model=model, toolset=Toolset(TOOLS), limits=Limits())
        graph = graph_compile(InMemorySaver())
        config: RunnableConfig = {"configurable": {"thread_id": str(number)}}
        result = graph.invoke({}, config, context=parts)
        while "__interrupt__" in result:
            asked = result["__interrupt__"][0].value["calls"]
            made = {key: DECISIONS[str(host.calls[key].arguments["thing"])] for key in asked}
            result = graph.invoke(Command(resume={"decisions": made}), config, context=parts)
        relayed = [AIMessage(host.ends[0].stub)] if host.ends[0].stub else []
        past = [*result["messages"], *relayed]


def _through_create_agent(model: BaseChatModel, *, streams: bool) -> None:
    context = context_make(RIGHT)
    agent = create_agent(
        model,
        middleware=countersign_stack(TOOLS, lambda: context),
        checkpointer=InMemorySaver(),
    )
    config: RunnableConfig = {"configurable": {"thread_id": "t"}}

    def play(given: Any) -> Sequence[Any]:
        # Only a reader of messages makes the agent stream.
        mode: Any = ["messages", "updates"] if streams else ["updates"]
        for _step in agent.stream(given, config, stream_mode=mode):
            pass
        pauses = agent.get_state(config).interrupts
        return list(pauses[0].value["calls"]) if pauses else []

    for words, _steps in TURNS:
        asked = play({"messages": [HumanMessage(words)]})
        while asked:
            made = {call["id"]: DECISIONS[call["arguments"]["thing"]] for call in asked}
            asked = play(Command(resume={"decisions": made}))


Through = Callable[..., None]


@pytest.fixture(
    params=[
        ("graph", _through_the_graph, True),
        ("agent", _through_create_agent, False),
        ("agent, streamed", _through_create_agent, True),
    ],
    ids=lambda param: param[0],
)
def sent(request: pytest.FixtureRequest) -> Iterator[GroqServer]:
    """Return the server after the whole conversation."""
    _name, through, streams = request.param
    with groq_serve(*STEPS) as server:
        model = chat_model(f"groq:{PLAYS}", timeout=5, api_key="k-1", base_url=server.address)
        through(model, streams=streams)
        assert len(server.bodies) == len(STEPS)
        assert all(bool(body.get("stream")) is streams for body in server.requests)
        yield server


def test_nothing_of_ours_but_the_ids_of_calls_is_in_any_request(sent: GroqServer) -> None:
    marked = [MARK, str(RECORD), RECORD.hex, "the-providers-own", "RuntimeError", RIGHT]
    found = {at: strays(body, *marked) for at, body in enumerate(sent.bodies)}
    assert {at: stray for at, stray in found.items() if stray} == {}


def test_each_call_has_one_id_of_ours_and_one_reply_in_every_request(sent: GroqServer) -> None:
    for body in sent.bodies:
        ids = ids_sent(body)
        assert unanswered(body) == []
        assert len(set(ids)) == len(ids)
        assert all(str(UUID(key)) == key for key in ids)


def test_the_arguments_of_the_calls_are_what_the_model_wrote(sent: GroqServer) -> None:
    wrote = [call for step in STEPS for call in step.calls]
    # What could not be read has no arguments; the reply to it says so.
    expected = [
        (call.tool, {} if isinstance(call.arguments, str) else dict(call.arguments))
        for call in wrote
    ]
    assert calls_sent(sent.bodies[-1]) == expected
    for body in sent.bodies:
        made = calls_sent(body)
        assert made == expected[: len(made)]


def test_a_relayed_answer_comes_back_as_its_stub_and_never_as_the_models_words(
    sent: GroqServer,
) -> None:
    last = sent.requests[-1]["messages"]
    own = [each["content"] for each in last if each["role"] == "assistant" and each["content"]]
    told = [step.text for step in STEPS[:-1] if step.text]
    assert [text for text in own if text != STUB] == told
    assert own.count(STUB) == len(TURNS) - 1 - len(told)


def test_a_polished_answer_is_asked_for_with_its_text_alone() -> None:
    context = context_make(RIGHT)
    with groq_serve(calls(_one("pay", "A")), says("A is paid.")) as server:
        model = chat_model(f"groq:{PLAYS}", timeout=5, api_key="k-1", base_url=server.address)
        host = Host(lambda: context)
        parts = Parts(
            host=host, model=model, toolset=Toolset(TOOLS), limits=Limits(), stop_mode="polish"
        )
        graph_compile(None).invoke({}, context=parts)

        assert [strays(body, MARK, str(RECORD)) for body in server.bodies] == [[], []]
        rewritten = server.requests[1]
    assert "tools" not in rewritten
    assert [message["role"] for message in rewritten["messages"]] == ["system", "user"]
    assert rewritten["messages"][1]["content"] == "A is paid."
    assert host.ends[0].answer == "A is paid."
