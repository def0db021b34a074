"""Where the settings of a run go: the graph's config and its context (spec §3 `AgRunConfig`)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from agjson.types import UNSET, AgClientCapabilities, AgRunConfig
from agjson.wire import to_dict

__all__ = ["TURN_ID", "config_for", "fields_of", "place_settings", "state_update", "with_values"]

TURN_ID = "agjson/turnId"
"""The key of the graph's metadata that says which turn wrote a checkpoint."""

# A client tool goes to the model beside those of the run; the settings have one place for both.
_FRONTEND_TOOLS = "frontend_tools"


def config_for(
    base: Mapping[str, Any] | None,
    *,
    thread_id: str,
    turn_id: str,
    configurable: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A ``RunnableConfig`` for one run.

    Args:
        base: what the host wants in it; its ``configurable.thread_id`` wins over the one that is given.
        thread_id: the thread of the graph's checkpointer.
        turn_id: the turn, noted in the checkpoints that the run writes.
        configurable: further members of ``configurable``.
    """
    base = dict(base or {})
    given = {**(base.get("configurable") or {}), **(configurable or {})}
    given.setdefault("thread_id", thread_id)
    base["configurable"] = given
    base["metadata"] = {**(base.get("metadata") or {}), TURN_ID: turn_id}
    return base


def place_settings(
    run: AgRunConfig | None,
    capabilities: AgClientCapabilities | None,
    *,
    context_fields: Collection[str] = (),
    configurable: Collection[str] = (),
) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Sort the settings of a run into those that the graph reads and those that it has no place for.

    A graph says what it reads: its context schema has a field of the setting's name (``model``, ``max_tokens``), or the
    host names it as configurable, as ``init_chat_model(configurable_fields=...)`` reads it. What goes there is plain
    data, tools and blocks in their wire form.

    Args:
        run: the settings; None: none.
        capabilities: what the client can do; its ``frontendTools`` are the setting ``frontend_tools``.
        context_fields: the fields of the graph's context.
        configurable: names of settings that the graph reads from ``config["configurable"]``.

    Returns:
        Members of the context, members of ``configurable``, and the paths of what has no place.
    """
    context: dict[str, Any] = {}
    configured: dict[str, Any] = {}
    unsupported: list[str] = []
    for name, path, value in _settings(run, capabilities):
        if name in context_fields:
            context[name] = value
        if name in configurable:
            configured[name] = value
        if name not in context_fields and name not in configurable:
            unsupported.append(path)
    return context, configured, unsupported


def _settings(run: AgRunConfig | None, capabilities: AgClientCapabilities | None) -> list[tuple[str, str, Any]]:
    """Every setting that is made: its Python name, its path in the input, and its plain value."""
    found: list[tuple[str, str, Any]] = []
    if run is not None:
        plain = to_dict(run)
        for name, wire in zip(run.__struct_fields__, run.__struct_encode_fields__, strict=True):
            if wire in plain:
                found.append((name, f"run.{wire}", plain[wire]))
    if capabilities is not None and capabilities.frontend_tools:
        tools = [to_dict(tool) for tool in capabilities.frontend_tools]
        found.append((_FRONTEND_TOOLS, "capabilities.frontendTools", tools))
    return found


def fields_of(schema: Any) -> frozenset[str]:
    """The names of the fields of a context schema: a dataclass, a pydantic model or a ``TypedDict``; none for others.

    Args:
        schema: the class, or None.
    """
    if schema is None:
        return frozenset()
    if dataclasses.is_dataclass(schema):
        return frozenset(field.name for field in dataclasses.fields(schema))
    fields = getattr(schema, "model_fields", None)
    if isinstance(fields, Mapping):
        return frozenset(map(str, fields))
    names: set[str] = set()
    for each in getattr(schema, "__mro__", (schema,)):
        names.update(getattr(each, "__annotations__", ()))
    return frozenset(names)


def with_values(context: Any, values: Mapping[str, Any]) -> Any:
    """A context with some fields set.

    Args:
        context: the host's: a mapping, a dataclass, a pydantic model, or None.
        values: the fields to set.

    Raises:
        TypeError: fields are to be set on a context of another kind.
    """
    if not values:
        return context
    if context is None or isinstance(context, Mapping):
        return {**(context or {}), **values}
    if dataclasses.is_dataclass(context) and not isinstance(context, type):
        return dataclasses.replace(context, **values)
    copy = getattr(context, "model_copy", None)
    if copy is not None:
        return copy(update=dict(values))
    raise TypeError(f"a context of type {type(context).__name__} cannot take the settings of a run")


def state_update(
    state: Any, *, shared: Any, keys: Collection[str] | None, reserved: Collection[str]
) -> tuple[dict[str, Any], list[str]]:
    """What an input's ``state`` changes: the keys whose values are others than those that the thread has.

    A key that comes back as it was told is no change; a channel that adds up would count it twice.

    Args:
        state: the ``state`` of the input; UNSET: none.
        shared: the shared state of the thread, as it was streamed.
        keys: the keys of the graph's input; None: any.
        reserved: keys that the input says elsewhere.

    Returns:
        The changes, and the paths of what the graph does not take from a client.
    """
    if state is UNSET:
        return {}, []
    if not isinstance(state, Mapping):
        return {}, ["state"]
    before = shared if isinstance(shared, Mapping) else {}
    changes: dict[str, Any] = {}
    unsupported: list[str] = []
    for key, value in state.items():
        if key in before and _same(before[key], value):
            continue
        if key in reserved or (keys is not None and key not in keys):
            unsupported.append(f"state.{key}")
        else:
            changes[key] = value
    return changes, unsupported


def _same(a: Any, b: Any) -> bool:
    """Whether two plain values are the same; unlike ``==``, true is not 1."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return isinstance(a, bool) is isinstance(b, bool) and a == b
