"""An agent that wants something of its user, for clients in processes of their own.

The user's words say what: ``approve``, ``grant``, ``choose``, ``tell``, ``fill``, ``open`` (asks of each kind),
``tools`` (two calls), ``hang`` (two words, and then nothing for ever), ``dirty`` (text that would command a terminal),
``fail``. What it has got it repeats as JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from agjson.agents import Invocation
from agjson.middleware.asgi import AgentApp
from agjson.types import AgChoice, AgGrantMode, ResumeInput
from agjson.wire import to_dict
from tests.support.scripted import ScriptAgent, calls, text

DIRTY = "clear\x1b[2Jtitle\x1b]0;gone\x07back\rover\u202edone"

ASKS: dict[str, dict[str, Any]] = {
    "approve": {"kind": "approval", "message": "Delete\x1b[1A it?", "token": "tok", "request_state": "st\u00e4te"},
    "grant": {"kind": "approval", "message": "Run it?", "grant_modes": [AgGrantMode(id="once"), AgGrantMode(id="all")]},
    "choose": {
        "kind": "choice",
        "message": "Which?",
        "choices": [AgChoice(id="a", label="Ham"), AgChoice(id="b", label="Egg")],
    },
    "tell": {"kind": "text", "message": "Who are you?"},
    "fill": {"kind": "form", "message": "Your address?", "schema": {"type": "object"}},
    "open": {"kind": "url", "message": "Pay there.", "url": "javascript:alert(1)"},
}


def wanting(invocation: Invocation) -> Iterator[Any]:
    """The script that the user's words tell."""
    if isinstance(invocation.input, ResumeInput):
        answers = [to_dict(answer) for answer in invocation.input.answers or ()]
        yield from text(json.dumps(answers, ensure_ascii=False).replace(" ", ""), id="got")
        return
    if invocation.results:
        results: list[Any] = list(invocation.results)
        yield from text(" ".join(result.content[0].text for result in results), id="got")
        return
    said: Any = invocation.messages[-1].content[0]
    if said.text in ASKS:
        yield {"do": "hitl_ask", "ask_id": f"ask-{said.text}", **ASKS[said.text]}
        yield {"do": "turn_paused"}
    elif said.text == "tools":
        yield from calls("Oslo", "Rome")
    elif said.text == "hang":
        yield from text("well now")[:4]
        yield asyncio.sleep(3600)
    elif said.text == "fail":
        raise RuntimeError("told to fail")
    else:
        yield from text(DIRTY if said.text == "dirty" else f"heard {said.text}")


def make_app(**settings: Any) -> AgentApp:
    """The agent, served."""
    return AgentApp(ScriptAgent(wanting), **settings)
