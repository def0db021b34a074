"""Rules on what goes to a framework: what an input asks for, and nothing that a model must not see (spec §2, §3)."""

from __future__ import annotations

from typing import Any

from agjson.errors import AgJSONError
from agjson.jsonable import jsonable
from agjson.testing.contract._running import THREAD, TURN
from agjson.testing.contract._values import as_json, leaves, same
from agjson.testing.contract.rule import expect, rule
from agjson.testing.contract.subject import NotApplicable, Subject
from agjson.types import (
    AgMessage,
    AgProviderMeta,
    AgPushNotification,
    AgResponseFormat,
    AgRunConfig,
    AgToolDef,
    StartInput,
    TextBlock,
)

__all__ = ["RUN_CONFIGS", "unsupported_by"]

_SCHEMA: Any = {"type": "object", "properties": {"contract_member": {"type": "string"}}, "additionalProperties": False}
_SAID = [AgMessage(id="contract-u", role="user", content=[TextBlock(text="contract-words")])]

RUN_CONFIGS: dict[str, tuple[AgRunConfig, object]] = {
    "model": (AgRunConfig(model="contract-model"), "contract-model"),
    "system": (AgRunConfig(system="contract-system"), "contract-system"),
    "tools": (AgRunConfig(tools=[AgToolDef(name="contract_tool", input_schema=_SCHEMA)]), "contract_tool"),
    "responseFormat": (AgRunConfig(response_format=AgResponseFormat(schema=_SCHEMA)), "contract_member"),
    "maxTokens": (AgRunConfig(max_tokens=4321), 4321),
    "temperature": (AgRunConfig(temperature=0.375), 0.375),
    "topP": (AgRunConfig(top_p=0.4375), 0.4375),
    "stopSequences": (AgRunConfig(stop_sequences=["contract-stop"]), "contract-stop"),
    "context": (AgRunConfig(context=[TextBlock(text="contract-context")]), "contract-context"),
    "pushNotification": (
        AgRunConfig(push_notification=AgPushNotification(url="https://contract.example")),
        "https://contract.example",
    ),
}
"""Members of a run configuration, each with a value that is found where it is honoured."""

# What no model reads, by where it stands.
_HIDDEN = {
    "a message of role notice": AgMessage(id="contract-n", role="notice", content=[TextBlock(text="contract-hidden")]),
    "_meta of a block": AgMessage(
        id="contract-m", role="user", content=[TextBlock(text="seen", meta={"contract/trace": "contract-hidden"})]
    ),
    "agjson/ provider metadata": AgMessage(
        id="contract-p",
        role="user",
        content=[TextBlock(text="seen", provider_metadata=AgProviderMeta({"agjson/contract": "contract-hidden"}))],
    ),
    "metadata of a message": AgMessage(
        id="contract-d", role="user", content=[TextBlock(text="seen")], metadata={"contract": "contract-hidden"}
    ),
}


@rule("run-config", "§3 AgRunConfig")
def run_config(subject: Subject) -> None:
    """Each member of a run configuration is in the native call, named in its `unsupported`, or refused by its path."""
    if subject.adapter.to_native is None:
        raise NotApplicable("the adapter has no to_native")
    for member, (config, value) in RUN_CONFIGS.items():
        path = f"run.{member}"
        try:
            call = subject.adapter.to_native(_start(config), history=[])
        except AgJSONError as error:
            expect(path in str(getattr(error, "path", "")), f"{path}: refused without its path: {error}")
            continue
        honoured = _holds(call, value)
        named = path in unsupported_by(call)
        expect(honoured or named, f"{path}: {value!r} is not in the native call, and `unsupported` does not name it")
        expect(not (honoured and named), f"{path}: `unsupported` names it, but {value!r} is in the native call")


@rule("not-for-the-model", "§2.1, §6, §13")
def not_for_the_model(subject: Subject) -> None:
    """Notices, _meta, metadata, agjson/ keys and tools for the app alone are in no native call."""
    made: dict[str, object] = {}
    if subject.adapter.messages_to_native is not None:
        for what, message in _HIDDEN.items():
            made[f"messages_to_native, {what}"] = subject.adapter.messages_to_native([*_SAID, message])
    if subject.adapter.to_native is not None:
        tool = AgToolDef(name="contract-hidden", input_schema=_SCHEMA, ui_visibility=["app"])
        config = AgRunConfig(tools=[tool])
        made["to_native, a tool for the app alone"] = subject.adapter.to_native(_start(config), history=[])
    if not made:
        raise NotApplicable("the adapter has neither messages_to_native nor to_native")
    for where, native in made.items():
        sent = as_json(native)
        expect("contract-words" in sent, f"{where}: what the user says is not in it")
        expect("contract-hidden" not in sent, f"{where}: it reaches the model")


def unsupported_by(call: object) -> list[str]:
    """The members that a native call cannot honour, by their JSON names."""
    return [str(path) for path in getattr(call, "unsupported", None) or ()]


def _start(config: AgRunConfig) -> StartInput:
    return StartInput(thread_id=THREAD, turn_id=TURN, messages=_SAID, run=config)


def _holds(call: object, value: object) -> bool:
    """Whether a value is in a call: as a string, inside one, as the name of a member, or as a number."""
    if isinstance(value, str):
        return value in as_json(call)
    return any(same(leaf, value) for _, leaf in leaves(jsonable(call)))
