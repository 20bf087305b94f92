"""Runs on real Postgres and Redis with probe tools and a model that plays a script."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from agent_core.contract import Artifact, RunContext, Tool, completed, fatal, transient
from agent_core.policy import Proposal, ReviewProposal, Verdict, allow
from agent_core.runs import services, work
from agent_core.runs.models import Conversation, Run
from agent_core.toolset import Toolset
from tests.runs.scripting import ScriptedModel, Step, scripted

EFFECTS: list[str] = []


def probe_pay(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Pay an amount."""
    context.fence()
    EFFECTS.append(f"pay {amount}")
    return f"Paid {amount}.", completed(
        "pay.completed", stop=True, data={"summary": f"paid {amount}"}
    )


def probe_refund(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Refund an amount after review."""
    EFFECTS.append(f"refund {amount} {'approved' if context.review_id else 'unapproved'}")
    return f"Refunded {amount}.", completed("refund.completed", stop=True)


def probe_look(context: RunContext, *, key: str) -> tuple[str, Artifact]:
    """Look something up."""
    return f"Found {key}.", completed("look.completed", stop=False)


def probe_slow(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Fail for now."""
    return "It is being checked.", transient("slow.unknown", data={"unknown": True})


def probe_broken(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Break."""
    raise RuntimeError("postgres://secret@inner/host exploded")


def probe_decline(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Fail for good."""
    return "The card was declined.", fatal("decline")


def _reviewed(proposal: Proposal, facts: Any) -> Verdict:
    return Verdict(kind="review", rule="always")


def _blocked(proposal: Proposal, facts: Any) -> Verdict:
    return Verdict(kind="block", rule="limit", text="Above your daily limit.")


def _ask(context: RunContext, arguments: Any, facts: Any) -> ReviewProposal:
    amount = arguments["amount"]
    return ReviewProposal(
        kind="probe",
        subject_id=None,
        subject_hash=f"hash {amount}",
        title=f"Refund {amount}",
        button=f"Approve {amount}",
    )


def _tool(name: str, run: Any, **options: Any) -> Tool:
    effect = options.pop("effect", True)
    return Tool(
        name=name,
        run=run,
        doing=f"Doing {name.rsplit('_', maxsplit=1)[-1]}",
        done=f"Did {name.rsplit('_', maxsplit=1)[-1]}",
        right="reviews.view_review",
        effect=effect,
        may_stop=options.pop("may_stop", True),
        policies=options.pop("policies", (allow,)),
        identity=(lambda _context, arguments: str(arguments["amount"])) if effect else None,
        **options,
    )


PROBES = (
    _tool("probe_pay", probe_pay),
    _tool("probe_refund", probe_refund, policies=(_reviewed,), propose=_ask),
    _tool("probe_look", probe_look, effect=False, may_stop=False),
    _tool("probe_slow", probe_slow),
    _tool("probe_broken", probe_broken),
    _tool("probe_decline", probe_decline),
    _tool("probe_blocked", probe_pay, policies=(_blocked,)),
)


@pytest.fixture
def effects() -> Iterator[list[str]]:
    """Return the effects that the probe tools have had in this test."""
    EFFECTS.clear()
    yield EFFECTS
    EFFECTS.clear()


@pytest.fixture
def tom(transactional_db: None) -> User:
    """Return a support agent."""
    return User.objects.create_superuser("tom", password="x", first_name="Tom")


@pytest.fixture
def maria(transactional_db: None) -> User:
    """Return a lead who reviews."""
    return User.objects.create_superuser("maria", password="x", first_name="Maria")


@pytest.fixture
def conversation(tom: User) -> Conversation:
    """Return an empty conversation of Tom's."""
    return services.conversation_start(owner=tom)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedModel]:
    """Let the worker's model play the given steps on the probe tools."""

    def play(*steps: Step) -> ScriptedModel:
        model = scripted(steps)
        monkeypatch.setattr(work, "chat_model", lambda *_args, **_options: model)
        monkeypatch.setattr(work, "toolset", lambda: Toolset(PROBES))
        return model

    return play


@pytest.fixture
def say(conversation: Conversation, tom: User) -> Callable[[str], Run]:
    """Send a message as Tom and work its run off in this process."""

    def send(text: str) -> Run:
        run = services.message_send(conversation=conversation, sender=tom, text=text)
        work.run_work(run.pk)
        run.refresh_from_db()
        return run

    return send
