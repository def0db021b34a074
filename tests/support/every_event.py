"""A stream with every event type, every block kind and every citation kind, each optional field filled in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.support.cli import ev, wire

SECRET = "s3cr3t"
"""Stands in every field whose value a person must not see (spec §13.1, §13.2)."""

_META = {"note": "n"}
_PROVIDER = {"vendor": {"id": SECRET}}
_OPAQUE = {"kind": "signature", "value": SECRET, "provider": "p"}
_COMMON: dict[str, Any] = {"annotations": {"audience": ["user"], "priority": 1}, "_meta": _META}
_USAGE = {
    "inputTokens": 1200,
    "outputTokens": 30,
    "cacheReadTokens": 1,
    "cacheWriteTokens": 2,
    "reasoningTokens": 3,
    "toolUseInputTokens": 4,
    "totalTokens": 5,
    "costUsd": 0.25,
    "cumulative": True,
    "serverToolRequests": 6,
}
_SAFETY = [{"category": "violence", "score": 0.5, "probability": "LOW", "blocked": False}]
_AUTH = {
    "scheme": "oauth2",
    "scopes": ["read"],
    "authorizationUrl": "https://id.example/authorize",
    "tokenUrl": "https://id.example/token",
    "clientId": "client",
    "audience": "api",
}
_ASK = {
    "askId": "ask-1",
    "kind": "choice",
    "message": "Which one?",
    "toolCallId": "c1",
    "schema": {"type": "object"},
    "choices": [{"id": "y", "label": "Yes", "value": 1}],
    "authConfig": _AUTH,
    "url": "https://pay.example/consent",
    "reason": "it costs",
    "metadata": {"token": SECRET, "question": "sure?"},
    "requestState": SECRET,
    "inputKey": "k",
    "resumeBinding": "id",
    "ordinal": 0,
    "token": SECRET,
    "expiresAt": "2026-01-01T00:00:00Z",
    "grantModes": [{"id": "once", "label": "Once", "description": "only now"}],
}
_CITED = {
    "citedText": "the words",
    "source": "src",
    "title": "A title",
    "confidence": 0.5,
    "encryptedIndex": SECRET,
    "indexFrame": "source",
}
CITATIONS: list[dict[str, Any]] = [
    {"kind": "char", "documentIndex": 0, "startCharIndex": 0, "endCharIndex": 1, **_CITED},
    {"kind": "page", "documentIndex": 0, "startPage": 1, "endPage": 2, **_CITED},
    {"kind": "block", "documentIndex": 0, "startBlockIndex": 0, "endBlockIndex": 1, **_CITED},
    {"kind": "url", "url": "https://cited.example/page", **_CITED},
    {
        "kind": "offset",
        "startIndex": 0,
        "endIndex": 1,
        "sourceIds": ["s1"],
        "unit": "byte",
        "bounds": "[start,end)",
        **_CITED,
    },
]
SOURCES: list[dict[str, Any]] = [
    {"type": "base64", "mediaType": "image/png", "data": "aGVsbG8gd29ybGQ="},
    {"type": "url", "url": "https://files.example/a.png", "mediaType": "image/png"},
    {"type": "file", "fileId": "file-1", "mediaType": "image/png"},
    {"url": "https://web.example/", "title": "Web"},
    {"type": "document", "mediaType": "text/plain", "title": "Doc", "filename": "doc.txt"},
]
_RESULT: dict[str, Any] = {
    "toolCallId": "c1",
    "outcome": "error",
    "structuredContent": {"t": 21},
    "uiData": {"ui": 1},
    "sideData": {"side": 1},
    "errorText": "it broke",
    "errorCode": "E1",
    "providerMetadata": _PROVIDER,
    "toolMetadata": _META,
    "dynamic": True,
    "pendingInput": {"requestState": SECRET, "inputKeys": ["k1"]},
    "isError": True,
}
BLOCKS: list[dict[str, Any]] = [
    {"type": "text", "text": "plain", "citations": CITATIONS, "providerMetadata": _PROVIDER},
    *({"type": kind, "source": SOURCES[0], "providerMetadata": _PROVIDER} for kind in ("image", "audio")),
    {"type": "file", "source": SOURCES[1], "filename": "a.png"},
    {"type": "document", "source": SOURCES[2], "title": "Doc"},
    {"type": "resource", "resource": {"uri": "ui://app", "mimeType": "text/html", "text": "<b>", "_meta": _META}},
    {"type": "resource-link", "uri": "https://mcp.example/r", "mimeType": "text/plain"},
    {"type": "code", "language": "python", "code": "print(1)"},
    {"type": "code-result", "outcome": "failed", "output": "Traceback"},
    {
        "type": "reasoning",
        "text": "hm",
        "opaque": _OPAQUE,
        "provider": "p",
        "providerMetadata": _PROVIDER,
        "providerDetails": SECRET,
        "itemId": "rs_1",
    },
    {"type": "compaction", "text": "earlier", "opaque": _OPAQUE, "provider": "p"},
    {
        "type": "search-result",
        "url": "https://found.example/",
        "title": "Found",
        "opaque": {"kind": "ciphertext", "value": SECRET},
        "pageAge": "2 days",
    },
    {
        "type": "tool-call",
        "toolCallId": "c7",
        "name": "lookup",
        "input": {"q": 1},
        "serverName": "srv",
        "signature": SECRET,
        "title": "Look up",
        "providerMetadata": _PROVIDER,
    },
    {"type": "tool-result", "content": [{"type": "text", "text": "inner"}], **_RESULT},
    {"type": "data", "name": "status", "id": "d1", "data": {"step": 1}, "transient": True},
    {"type": "provider-raw", "vendor": "acme", "raw": {"blob": SECRET}},
]
for _block in BLOCKS:
    _block.update(_COMMON)


def every_event() -> list[dict[str, Any]]:
    """The stream, with ordinals; it is well ordered enough for eyes, not for `check`."""
    return wire(_events())


def _events() -> Iterator[dict[str, Any]]:
    yield ev("turn.start", turnId="t1", threadId="th1", trigger={"kind": "schedule", "ref": "nightly"})
    yield ev(
        "agent.capabilities",
        capabilities={
            "streaming": {"partialMessages": True},
            "pushNotifications": True,
            "securitySchemes": [_AUTH],
            "extensions": ["urn:x"],
            "uiCatalogs": ["basic"],
            "profile": "ADVANCED",
        },
    )
    yield ev("host.context", theme={"dark": True}, capabilities=None, container={"w": 1})
    yield ev("step.start", id="st1", stepName="plan")
    yield ev(
        "message.start",
        id="m1",
        role="assistant",
        turnId="t1",
        threadId="th1",
        stepId="st1",
        extensions=["urn:x"],
        candidateIndex=1,
        agentId="ag1",
        agentName="Ada",
        agentRole="writer",
        model="model-x",
        noticeSource="host",
    )
    yield ev("reasoning.start", id="r1", mode="full", partIndex=0, providerMetadata=_PROVIDER, itemId="rs_1")
    yield ev("reasoning.delta", id="r1", delta="I wonder", partIndex=0, providerMetadata=_PROVIDER)
    yield ev("reasoning.opaque.delta", id="r1", delta=SECRET)
    yield ev("reasoning.opaque", id="r1", kind="signature", value=SECRET, provider="p", itemId="rs_1")
    yield ev("reasoning.end", id="r1", provider="p", providerMetadata=_PROVIDER)
    yield ev("text.start", id="b1", role="assistant", index=0, providerMetadata=_PROVIDER)
    yield ev("text.delta", id="b1", delta="Good day", providerMetadata=_PROVIDER)
    yield ev("text.end", id="b1", providerMetadata=_PROVIDER, citations=CITATIONS)
    yield ev(
        "tool.start",
        toolCallId="c1",
        name="weather",
        serverName="srv",
        providerExecuted=True,
        requiresApproval=True,
        title="Weather",
        toolMetadata=_META,
        itemId="fc_1",
        providerMetadata=_PROVIDER,
        longRunning=True,
    )
    yield ev("tool.args.delta", toolCallId="c1", delta='{"city":"Oslo"}')
    yield ev(
        "tool.args.assembled",
        toolCallId="c1",
        input={"city": "Oslo"},
        signature=SECRET,
        title="Weather",
        providerMetadata=_PROVIDER,
    )
    yield ev("tool.done", content=BLOCKS, messageId="c1:result", more=True, preliminary=True, **_RESULT)
    for block in BLOCKS:
        yield ev("content.block", block=block)
    yield ev("message.metadata", metadata={"tokens": 7, "apiKey": SECRET})
    yield ev("hitl.ask", continuation="resume", **_ASK)
    for number, source in enumerate(SOURCES):
        yield ev("source", sourceId=f"s{number}", source=source, chunkIndex=number, providerMetadata=_PROVIDER)
    yield ev("artifact.start", artifactId="ar1", turnId="t1", threadId="th1", name="report", description="A report")
    yield ev("artifact.delta", artifactId="ar1", part={"type": "text", "text": "Chapter one"}, append=False)
    yield ev("artifact.delta", artifactId="ar1", part=BLOCKS[3], append=False)
    yield ev("artifact.end", artifactId="ar1", lastChunk=True)
    yield ev("display.required", provider="google", html="<b>must</b>")
    yield ev("subagent.start", turnId="sub1", parentTurnId="t1", agentId="ag2", agentName="Bob")
    yield ev("message.start", id="m2", role="assistant", turnId="sub1", threadId="th1")
    yield ev("message.end", id="m2", turnId="sub1", usage=_USAGE)
    yield ev("message.remove", id="m2", turnId="sub1")
    yield ev("turn.abort", turnId="sub1", reason="enough")
    yield ev("subagent.done", turnId="sub1", parentTurnId="t1")
    yield ev("handoff", kind="transfer", fromAgentId="ag1", toAgentId="ag2", toAgentName="Bob")
    yield ev("ui.surface.start", surfaceId="sf1", catalogId="basic", components=[1], dataModel={}, toolCallId="c1")
    yield ev("ui.surface.update", surfaceId="sf1", components=[{"id": "root"}])
    yield ev("ui.data-model", surfaceId="sf1", path="/a", value=1)
    yield ev("ui.call", surfaceId="sf1", callId="uc1", method="scroll", args={"to": 1}, wantResponse=True)
    yield ev("ui.result", surfaceId="sf1", callId="uc1", method="scroll", value=1)
    yield ev("ui.action-result", surfaceId="sf1", actionId="ua1", error={"code": "E", "message": "no", "path": "/a"})
    yield ev("ui.widget.result", surfaceId="sf1", callId="uc2", result="widget says")
    yield ev("ui.display-mode", mode="pip", granted="inline", surfaceId="sf1", toolCallId="c1")
    yield ev("ui.surface.end", surfaceId="sf1")
    yield ev("state.snapshot", snapshot={"a": 1, "token": SECRET})
    yield ev("state.delta", patch=[{"op": "replace", "path": "/a", "value": 2}])
    yield ev("memory.write", scope="user", key="name", value={"password": SECRET}, reason="asked", durable=True)
    yield ev("guardrail.result", target="input", passed=False, action="block", reason="rude", guardrailName="manners")
    yield ev("prompt.blocked", reason="safety", safety=_SAFETY)
    yield ev("error", message="a hiccup", code="E2", retriable=True)
    yield ev("ext.acme.progress", value={"percent": 50, "encrypted_content": SECRET})
    yield ev("later.thing.update", value=SECRET)
    yield ev("step.done", id="st1", stepName="plan", usage=_USAGE)
    yield ev("message.end", id="m1", usage=_USAGE)
    yield ev(
        "turn.done",
        turnId="t1",
        outcome={"type": "paused", "asks": [_ASK, _ASK | {"askId": "ask-2"}], "result": {"half": 1}},
        finishReason="paused",
        usage=_USAGE,
        safety=_SAFETY,
        messageId="m1",
        messageMetadata={"x": 1},
        taskState="input-required",
    )
    yield ev("turn.start", turnId="t2", threadId="th1")
    yield ev("turn.error", turnId="t2", message="overloaded", code="E3", retriable=True, usage=_USAGE)
    yield ev(
        "messages.snapshot",
        messages=[{"id": "m9", "role": "user", "content": BLOCKS, "agentName": "Eve", "usage": _USAGE}],
        turns=[{"turnId": "t9", "threadId": "th1", "asks": [_ASK]}],
        artifacts=[{"artifactId": "ar9", "turnId": "t9", "threadId": "th1", "parts": BLOCKS}],
        memory=[{"scope": "thread", "value": SECRET}],
    )
