"""A real FastAPI application reads, answers and documents wire types."""

from __future__ import annotations

import json
from typing import Annotated, Any

import jsonschema
import pytest
from fastapi import Body, FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel

from agjson.bridge import Bridge
from agjson.types import (
    AgBlock,
    AgInput,
    AgMessage,
    AgReduceResult,
    AgStreamEvent,
    ExtEvent,
    StartInput,
    TextBlock,
    TextDelta,
)
from agjson.wire import extra_fields


class Note(BaseModel):
    """A body of the application's own with a wire type inside."""

    author: str
    block: Annotated[AgBlock, Bridge(AgBlock)]


app = FastAPI()


@app.post("/runs")
async def run(
    ag_input: Annotated[AgInput, Bridge(AgInput), Body()],
) -> Annotated[AgReduceResult, Bridge(AgReduceResult)]:
    assert isinstance(ag_input, StartInput)
    return AgReduceResult(messages=ag_input.messages, artifacts=[], memory=[], turns=[], state=None)


@app.get("/events", response_model=list[Annotated[AgStreamEvent, Bridge(AgStreamEvent)]])
async def events() -> list[AgStreamEvent]:
    return [TextDelta(seq=0, id="b", delta="é"), ExtEvent.embed("ext.acme.tick", {"seq": 7}, seq=1)]


@app.post("/notes")
async def note(body: Note) -> Note:
    return body


@app.post("/pairs")
async def pair(
    message: Annotated[AgMessage, Bridge(AgMessage), Body()],
    count: Annotated[int, Body()],
) -> dict[str, Any]:
    return {"count": count, "extra": {key: bytes(raw).decode() for key, raw in extra_fields(message).items()}}


@pytest.fixture
def client() -> TestClient:
    return TestClient(app)


MESSAGE = {"id": "m", "role": "user", "content": [{"type": "text", "text": "hi"}]}
START = {
    "kind": "start",
    "protocol": "agjson",
    "version": "1.0.0-draft.1",
    "threadId": "th",
    "turnId": "t",
    "messages": [MESSAGE],
}


def test_a_body_comes_in_typed_and_a_result_goes_out_as_the_wire_has_it(client: TestClient) -> None:
    reply = client.post("/runs", json=START)
    assert reply.status_code == 200
    assert reply.json() == {"messages": [MESSAGE], "artifacts": [], "memory": [], "turns": [], "state": None}


def test_unknown_fields_pass_through(client: TestClient) -> None:
    message = {**MESSAGE, "later": {"a": [None, 1.5]}}
    assert client.post("/runs", json={**START, "messages": [message]}).json()["messages"] == [message]


def test_a_list_of_events_goes_out(client: TestClient) -> None:
    assert client.get("/events").json() == [
        {"type": "text.delta", "seq": 0, "id": "b", "delta": "é"},
        {"type": "ext.acme.tick", "seq": 1, "shadowed": {"seq": 7}},
    ]


def test_a_model_of_the_application_may_hold_a_block(client: TestClient) -> None:
    body = {"author": "a", "block": {"type": "text", "text": "hi"}}
    assert client.post("/notes", json=body).json() == body
    assert Note.model_validate(body).block == TextBlock(text="hi")


def test_two_body_parameters_are_told_apart(client: TestClient) -> None:
    reply = client.post("/pairs", json={"message": {**MESSAGE, "later": 1}, "count": 2})
    assert reply.json() == {"count": 2, "extra": {"later": "1"}}


def test_an_error_is_a_422_with_its_place(client: TestClient) -> None:
    data = {**START, "messages": [{**MESSAGE, "content": [{"type": "text"}]}]}
    reply = client.post("/runs", json=data)
    assert reply.status_code == 422
    (detail,) = reply.json()["detail"]
    assert detail["type"] == "agjson_invalid"
    assert detail["loc"] == ["body", "messages", 0, "content", 0]
    assert "`text`" in detail["msg"]
    assert detail["input"] == "{'type': 'text'}"


def test_another_major_version_is_a_422(client: TestClient) -> None:
    reply = client.post("/runs", json={**START, "version": "2.0.0"})
    assert reply.status_code == 422
    assert reply.json()["detail"][0]["loc"] == ["body", "version"]


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream"]
)
def test_a_body_that_any_web_page_could_send_is_refused(client: TestClient, content_type: str) -> None:
    text = TestClient(app).build_request("POST", "/runs", json=START).content
    assert client.post("/runs", content=text, headers={"content-type": content_type}).status_code == 422
    assert client.post("/runs", content=text, headers={"content-type": "application/json"}).status_code == 200


def test_a_body_of_no_json_is_a_422(client: TestClient) -> None:
    half = json.dumps({**START, "kind": "\ud83d"}).encode()
    deep = json.dumps(START).encode()[:-1] + b',"state":' + b"[" * 900 + b"]" * 900 + b',"version":2}'
    for text in (b"{", b"NaN", b'"x"', b"[]", b"null", b'{"kind": NaN}', half, deep):
        reply = client.post("/runs", content=text, headers={"content-type": "application/json"})
        assert reply.status_code == 422, text[:80]


def test_the_document_describes_every_type_and_every_reference_resolves(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    body = document["paths"]["/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["$ref"] == "#/components/schemas/AgInput"
    answer = document["paths"]["/runs"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer["$ref"] == "#/components/schemas/AgReduceResult"
    items = document["paths"]["/events"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["items"]
    assert items == {"$ref": "#/components/schemas/AgStreamEvent"}
    schemas = document["components"]["schemas"]
    assert references(document) <= {f"#/components/schemas/{name}" for name in schemas}
    assert "ToolResultBlock" in json.dumps(sorted(schemas))
    assert "query" not in {each["in"] for each in document["paths"]["/runs"]["post"].get("parameters", [])}


def test_one_component_for_each_type_where_the_application_asks_for_it() -> None:
    plain = FastAPI(separate_input_output_schemas=False)
    plain.include_router(app.router)
    schemas = plain.openapi()["components"]["schemas"]
    assert {"AgInput", "AgReduceResult", "AgBlock", "AgUsage", "ExtEvent"} <= set(schemas)
    assert not {name for name in schemas if name.endswith(("-Input", "-Output"))}


def test_the_documented_schema_takes_what_the_application_takes(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    validator = jsonschema.Draft202012Validator({"$ref": "#/components/schemas/AgInput", **document})
    assert validator.is_valid(START)
    assert not validator.is_valid({**START, "version": "2.0.0"})
    assert not validator.is_valid({**START, "messages": [{**MESSAGE, "content": [{"type": "text"}]}]})


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set[str]()
        return own.union(*(references(value) for value in part.values()))
    return set[str]().union(*(references(item) for item in part)) if isinstance(part, list) else set()
