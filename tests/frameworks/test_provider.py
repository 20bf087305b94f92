"""What ChatGroq sends of a tool's reply, on the wire.

Each test names the place of ours that stands on what it shows. A red test is no defect of ours: it
says that the named place must be looked at before the new version is taken.
"""

from __future__ import annotations

import json

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_groq import ChatGroq
from pydantic import SecretStr

from tests.core.groq_server import groq_serve


def test_the_text_of_a_reply_is_sent_and_nothing_of_its_artifact() -> None:
    """Relies: `agent_core/contract.py:completed`, whose data is for the program only."""
    asked = {"id": "c", "name": "pay", "args": {}, "type": "tool_call"}
    reply = ToolMessage("Paid.", artifact={"code": "pay.secret"}, tool_call_id="c", name="pay")
    with groq_serve() as server:
        model = ChatGroq(
            model="say", api_key=SecretStr("k"), base_url=server.address, max_retries=0, timeout=5
        )
        model.invoke([HumanMessage("Pay."), AIMessage("", tool_calls=[asked]), reply])
        (body,) = server.requests
    assert body["messages"][-1]["content"] == "Paid."
    assert "secret" not in json.dumps(body)
    assert "artifact" not in json.dumps(body)
