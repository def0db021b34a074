"""The run configuration of an input as arguments of the Messages API (spec §3 `AgRunConfig`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from agjson.adapters.anthropic._api import TOOL_NAME, whole_number
from agjson.adapters.anthropic._carry import TOOL
from agjson.adapters.anthropic._out_blocks import plain_text, system_block
from agjson.adapters.anthropic._repair import Repairs
from agjson.errors import ReplayError
from agjson.types import (
    AgClientCapabilities,
    AgFrontendTool,
    AgReasoningConfig,
    AgResponseFormat,
    AgRunConfig,
    AgToolDef,
    FrontendToolSource,
    JsonValue,
    NamedToolChoice,
    Number,
)

__all__ = ["EFFORTS", "MIN_THINKING_BUDGET", "RunParams"]

MIN_THINKING_BUDGET = 1024
"""The fewest tokens that a thinking budget may hold."""

EFFORTS: Mapping[str, str] = {"minimal": "low", "low": "low", "medium": "medium", "high": "high"}
"""Neutral words for how hard to think, and the provider's."""

_TOOL_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


@dataclass(slots=True)
class RunParams:
    """Builds the arguments of a call from what the host asks of every call and what the input asks of this one.

    Attributes:
        params: the arguments, the host's first; the input's values win.
        repairs: where they are noted.
        unsupported: members of the input that cannot be honoured, by their JSON names.
    """

    params: dict[str, Any]
    repairs: Repairs
    unsupported: list[str] = field(default_factory=list[str])

    def apply(self, run: AgRunConfig | None, capabilities: AgClientCapabilities | None) -> None:
        """Apply the configuration of a run.

        Args:
            run: the run configuration, if the input has one.
            capabilities: what the client can do; its tools are declared, and run by it.

        Raises:
            ReplayError: a value that the API refuses; ``path`` names the member.
        """
        config = run or AgRunConfig()
        self._limits(config)
        self._system(config)
        frontend = (capabilities.frontend_tools if capabilities is not None else None) or ()
        self._tools(config.tools or (), frontend)
        self._reasoning(config.reasoning)
        self._tool_choice(config)
        self._format(config.response_format)
        self._sampling(config)
        if config.push_notification is not None:
            self.unsupported.append("run.pushNotification")

    def _limits(self, config: AgRunConfig) -> None:
        if config.model is not None:
            self.params["model"] = config.model
        if config.max_tokens is not None:
            self.params["max_tokens"] = _whole(config.max_tokens, 1, "$.run.maxTokens")
        if config.stop_sequences is not None:
            said = [text for text in config.stop_sequences if text.strip()]
            self.unsupported += [
                f"run.stopSequences[{index}]" for index, text in enumerate(config.stop_sequences) if not text.strip()
            ]
            self.params["stop_sequences"] = said

    def _system(self, config: AgRunConfig) -> None:
        if config.system is None:
            return
        if isinstance(config.system, str):
            blocks = [plain_text(config.system)] if config.system.strip() else []
        else:
            found = [
                system_block(block, f"$.run.system[{index}]", self.repairs) for index, block in enumerate(config.system)
            ]
            blocks = [block for block in found if block is not None]
        self.params["system"] = blocks

    def _tools(self, tools: Iterable[AgToolDef], frontend: Iterable[AgFrontendTool]) -> None:
        declared: list[Any] = list(self.params.get("tools") or ())
        hosts = {tool.get("name") for tool in declared if isinstance(tool, dict)}
        of_client: set[str] = set()
        for index, tool in enumerate(tools):
            path = f"run.tools[{index}]"
            if tool.ui_visibility is not None and "model" not in tool.ui_visibility:
                continue
            if tool.provider_executed:
                self._provider_tool(tool, path, hosts, declared)
            elif isinstance(tool.source, FrontendToolSource) and tool.name in of_client:
                continue
            else:
                if tool.name in hosts or tool.name in of_client:
                    raise ReplayError(f"there is a tool {tool.name!r} already", f"$.{path}.name")
                of_client.add(tool.name)
                declared.append(_declaration(tool.name, tool.description, tool.input_schema, f"$.{path}"))
                if tool.strict is not None:
                    declared[-1]["strict"] = tool.strict
        for index, offered in enumerate(frontend):
            path = f"$.capabilities.frontendTools[{index}]"
            if offered.name in hosts:
                raise ReplayError(f"there is a tool {offered.name!r} already", f"{path}.name")
            if offered.name not in of_client:
                of_client.add(offered.name)
                declared.append(_declaration(offered.name, offered.description, offered.input_schema, path))
        if declared:
            self.params["tools"] = declared

    def _provider_tool(self, tool: AgToolDef, path: str, hosts: set[Any], declared: list[Any]) -> None:
        """A tool that the provider runs: the host has declared it, or the definition brought its native form along."""
        native = tool.meta.get(TOOL) if tool.meta else None
        if tool.name in hosts:
            return
        if isinstance(native, dict) and isinstance(native.get("type"), str):
            hosts.add(tool.name)
            declared.append(dict(native))
        else:
            self.unsupported.append(path)

    def _reasoning(self, reasoning: AgReasoningConfig | None) -> None:
        if reasoning is None:
            return
        if reasoning.mode == "disabled":
            self.params["thinking"] = {"type": "disabled"}
            return
        kept = {
            name: value
            for name, value in cast(dict[str, Any], self.params.get("thinking") or {}).items()
            if name in ("display", "block_binding")
        }
        if reasoning.budget_tokens is not None:
            path = "$.run.reasoning.budgetTokens"
            budget = _whole(reasoning.budget_tokens, MIN_THINKING_BUDGET, path)
            if budget >= self.params["max_tokens"]:
                raise ReplayError(f"the budget must be below maxTokens, which is {self.params['max_tokens']}", path)
            self.params["thinking"] = {**kept, "type": "enabled", "budget_tokens": budget}
        else:
            self.params["thinking"] = {**kept, "type": "adaptive"}
        if reasoning.effort is not None:
            self._output_config(effort=EFFORTS[reasoning.effort])

    def _output_config(self, **values: Any) -> None:
        self.params["output_config"] = {**(self.params.get("output_config") or {}), **values}

    def _tool_choice(self, config: AgRunConfig) -> None:
        choice = config.tool_choice
        if choice is None:
            return
        names = {tool.get("name") for tool in self.params.get("tools") or () if isinstance(tool, dict)}
        forced = isinstance(choice, NamedToolChoice) or choice == "required"
        if not names:
            if forced:
                raise ReplayError("a tool is required and none is on offer", "$.run.toolChoice")
            self.params.pop("tool_choice", None)
            return
        if isinstance(choice, NamedToolChoice):
            if choice.name not in names:
                raise ReplayError(f"no tool {choice.name!r} is on offer", "$.run.toolChoice.name")
            native: dict[str, Any] = {"type": "tool", "name": choice.name}
        else:
            native = {"type": _TOOL_CHOICES[choice]}
        if forced and (self.params.get("thinking") or {}).get("type") == "enabled":
            raise ReplayError("a tool cannot be required while the thinking budget is set", "$.run.toolChoice")
        parallel = (self.params.get("tool_choice") or {}).get("disable_parallel_tool_use")
        if parallel is not None and native["type"] != "none":
            native["disable_parallel_tool_use"] = parallel
        self.params["tool_choice"] = native

    def _format(self, wanted: AgResponseFormat | None) -> None:
        if wanted is None:
            return
        if not isinstance(wanted.schema, dict):
            raise ReplayError("the schema of an answer must be an object", "$.run.responseFormat.schema")
        if wanted.strict is False:
            # The provider always holds the answer to the schema.
            self.unsupported.append("run.responseFormat.strict")
        self._output_config(format={"type": "json_schema", "schema": wanted.schema})

    def _sampling(self, config: AgRunConfig) -> None:
        """Sampling, which the client has no arguments for any more: it goes in the body."""
        thinks = (self.params.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        body: dict[str, Any] = dict(self.params.get("extra_body") or {})
        if config.temperature is not None:
            if thinks and config.temperature != 1:
                self.unsupported.append("run.temperature")
            else:
                body["temperature"] = _within_one(config.temperature, "$.run.temperature")
        if config.top_p is not None:
            if thinks and config.top_p < 0.95:
                self.unsupported.append("run.topP")
            else:
                body["top_p"] = _within_one(config.top_p, "$.run.topP")
        if body:
            self.params["extra_body"] = body


def _declaration(name: str, description: str | None, schema: JsonValue, path: str) -> dict[str, Any]:
    if not TOOL_NAME.fullmatch(name):
        raise ReplayError("a tool is named by up to 128 letters, digits, _ and -", f"{path}.name")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise ReplayError("the arguments of a tool must be an object", f"{path}.inputSchema")
    described = {"description": description} if description is not None else {}
    return {"name": name, **described, "input_schema": {"type": "object", **schema}}


def _whole(value: Number, least: int, path: str) -> int:
    whole = whole_number(value)
    if whole is None or whole < least:
        raise ReplayError(f"expected a whole number from {least}", path)
    return whole


def _within_one(value: Number, path: str) -> Number:
    if not 0 <= value <= 1:
        raise ReplayError("expected a number from 0 to 1", path)
    return value
