"""A tool of the product that somebody registers to return directly fails the harness, loudly."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import StructuredTool

from agent_core.harness import __main__ as command
from agent_core.toolset import Toolset


def test_a_tool_registered_again_to_return_directly_fails_the_harness(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The whole command, with every probe offered so that it returns directly."""
    assert command.main(["receipt"]) == 0
    structured = Toolset.structured

    def direct(self: Toolset, *given: Any) -> StructuredTool:
        return structured(self, *given).model_copy(update={"return_direct": True})

    monkeypatch.setattr(Toolset, "structured", direct)
    capsys.readouterr()
    assert command.main(["receipt"]) == command.FAILED
    assert "receipt was registered again with return_direct" in capsys.readouterr().err
