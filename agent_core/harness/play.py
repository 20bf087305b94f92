"""The orchestrations a case can be played through; `create_agent` only where it exists."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Final

from agent_core.harness.play_graph import play_graph
from agent_core.harness.transcript import Play


def _orchestrations() -> Mapping[str, Play]:
    """LangGraph 0.6 stands without LangChain's agents: there the explicit graph plays alone."""
    if importlib.util.find_spec("langchain") is None:
        return {"graph": play_graph}
    from agent_core.harness.play_middleware import play_middleware

    return {"graph": play_graph, "middleware": play_middleware}


ORCHESTRATIONS: Final = _orchestrations()
