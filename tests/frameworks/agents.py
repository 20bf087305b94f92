"""The bare `create_agent` for the characterisation tests; only where LangChain's agents are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime

Hook = AgentMiddleware[AgentState[Any], Any, Any]
Told = Callable[[AgentState[Any]], dict[str, Any] | None]


def agent(model: BaseChatModel, tools: Sequence[BaseTool], *middleware: Any) -> Any:
    """Return an agent of LangChain's with this middleware, as anybody would make it."""
    return create_agent(model, list(tools), middleware=middleware, checkpointer=InMemorySaver())


class Notes(Hook):
    """Writes down when its hooks run, with the number of messages that it sees."""

    def __init__(self, seen: list[str], name: str = "notes") -> None:
        super().__init__()
        self._seen, self._name = seen, name

    @property
    def name(self) -> str:
        """Return a name of its own: two of one kind must differ."""
        return self._name

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Write down that the model is about to be called."""
        self._seen.append(f"{self._name} before {len(state['messages'])}")

    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Write down that the model has answered."""
        self._seen.append(f"{self._name} after {len(state['messages'])}")
