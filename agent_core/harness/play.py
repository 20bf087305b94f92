"""The orchestrations a case can be played through; `create_agent` only where it exists."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from agent_core.harness.cases import Case
from agent_core.harness.play_graph import play_graph
from agent_core.harness.probes import NAMES, probe
from agent_core.harness.stage import Stage
from agent_core.harness.transcript import Play, Transcript


def _orchestrations() -> Mapping[str, Play]:
    """LangGraph 0.6 stands without LangChain's agents: there the explicit graph plays alone."""
    if importlib.util.find_spec("langchain") is None:
        return {"graph": play_graph}
    from agent_core.harness.play_middleware import play_middleware

    return {"graph": play_graph, "middleware": play_middleware}


ORCHESTRATIONS: Final = _orchestrations()


def played(case: Case, play: Play) -> Transcript:
    """Play a case with the probes it names, on a stage of its own.

    Raises:
        StageStuck: its parallel calls do not run side by side.
    """
    stage = Stage(case.finishing)
    wanted = {call.tool for step in case.steps for call in step.calls}
    probes = [probe(name, stage) for name in NAMES if name in wanted]
    return replace(play(case, probes, stage=stage), ran=stage.ran)
