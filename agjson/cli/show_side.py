"""Events that are told in a line or two, whatever came before them: asks, surfaces, state, memory, notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeGuard

from agjson.cli.show_blocks import Limits, Line, source_words
from agjson.cli.show_values import cut, shown_json, shown_members, shown_named, shown_size, shown_url
from agjson.cli.terminal import shown_text, shown_word
from agjson.types import (
    UNSET,
    AgAuthConfig,
    AgentCapabilities,
    AgPausedAsk,
    AgSafety,
    AgUiError,
    DisplayRequired,
    ErrorEvent,
    ExtEvent,
    GuardrailResult,
    HandoffEvent,
    HitlAsk,
    HostContext,
    MemoryWrite,
    MessageMetadata,
    PromptBlocked,
    SourceEvent,
    StateDelta,
    StateSnapshot,
    StepStart,
    UiActionResult,
    UiCall,
    UiDataModel,
    UiDisplayMode,
    UiResult,
    UiSurfaceEnd,
    UiSurfaceStart,
    UiSurfaceUpdate,
    UiWidgetResult,
    UnknownEvent,
)

__all__ = ["ask_lines", "side_lines"]

_SHOWN_CHANGES = 5


def side_lines(event: Any, limits: Limits) -> Iterator[Line]:
    """The lines of an event that needs no memory; none for an event that tells a person nothing."""
    if isinstance(event, ExtEvent):
        yield "faint", f"[{shown_word(event.type)}] {shown_named(event.type, event.payload, limits.words)}"
    elif isinstance(event, UnknownEvent):
        yield "faint", f"[unknown event {shown_word(event.type)}, {shown_size(len(event.raw))}]"
    else:
        tell = _TELLERS.get(event.type)
        if tell is not None:
            yield from tell(event, limits)


def ask_lines(ask: HitlAsk | AgPausedAsk, limits: Limits) -> Iterator[Line]:
    """An ask with everything that its answer needs; its token and state are not shown (spec §13.1, §13.2)."""
    head = f"? {ask.kind} {shown_word(ask.ask_id)}"
    yield "warning", f"{head}: {shown_text(ask.message)}" if ask.message else head
    if ask.tool_call_id is not None:
        yield "plain", f"  for the call {shown_word(ask.tool_call_id)}"
    if ask.reason is not None:
        yield "plain", f"  reason: {shown_text(ask.reason)}"
    for choice in ask.choices or ():
        yield "plain", f"  {shown_word(choice.id)}) {shown_word(choice.label)}"
    for mode in ask.grant_modes or ():
        words = ": ".join(shown_word(word) for word in (mode.label, mode.description) if word)
        yield "plain", f"  grant {shown_word(mode.id)}{f') {words}' if words else ''}"
    if ask.schema is not UNSET:
        yield "plain", f"  form: {shown_json(ask.schema, limits.value, hide=False)}"
    if ask.url is not None:
        yield "plain", f"  at {shown_url(ask.url)}"
    if ask.auth_config is not None:
        yield "plain", f"  {_auth_words(ask.auth_config)}"
    if ask.metadata:
        yield "faint", f"  {shown_json(ask.metadata, limits.words)}"
    if ask.expires_at is not None:
        yield "plain", f"  until {shown_word(ask.expires_at)}"


def _error(event: ErrorEvent, _: Limits) -> Iterator[Line]:
    code = f" ({shown_word(event.code)})" if event.code else ""
    again = ", may be tried again" if event.retriable else ""
    yield "bad", f"! {shown_text(event.message)}{code}{again}"


def _source(event: SourceEvent, _: Limits) -> Iterator[Line]:
    yield "faint", f"source {shown_word(event.source_id)}: {source_words(event.source)}"


def _handoff(event: HandoffEvent, _: Limits) -> Iterator[Line]:
    to = event.to_agent_name or event.to_agent_id or "another agent"
    start = f" from {shown_word(event.from_agent_id)}" if event.from_agent_id else ""
    yield "speaker", f"⇒ {event.kind or 'handoff'}{start} to {shown_word(to)}"


def _guardrail(event: GuardrailResult, _: Limits) -> Iterator[Line]:
    name = f"guardrail {shown_word(event.guardrail_name)}" if event.guardrail_name else "guardrail"
    verdict = "passed" if event.passed else "did not pass"
    words = [f"[{name}] {event.target} {verdict}"]
    words += [event.action] if event.action else []
    words += [shown_text(event.reason)] if event.reason else []
    yield "faint" if event.passed else "bad", f"{', '.join(words)}{_safety(event.safety)}"


def _prompt_blocked(event: PromptBlocked, _: Limits) -> Iterator[Line]:
    yield "bad", f"! the provider blocked the prompt: {event.reason}{_safety(event.safety)}"


def _safety(ratings: Any) -> str:
    ratings_: list[AgSafety] = list(ratings or ())
    words = ", ".join(shown_word(each.category) for each in ratings_)
    return f" ({words})" if words else ""


def _agent(event: AgentCapabilities, _: Limits) -> Iterator[Line]:
    can = event.capabilities
    words = [f"profile {can.profile}"] if can.profile else []
    words += ["partial messages"] if can.streaming and can.streaming.partial_messages else []
    words += ["push notifications"] if can.push_notifications else []
    words += [f"login by {shown_word(scheme.scheme)}" for scheme in can.security_schemes or ()]
    words += [f"catalog {shown_word(catalog)}" for catalog in can.ui_catalogs or ()]
    words += [f"extension {shown_word(uri)}" for uri in can.extensions or ()]
    yield "faint", f"[agent] {', '.join(words) or 'no capabilities named'}"


def _host(event: HostContext, limits: Limits) -> Iterator[Line]:
    parts = {"theme": event.theme, "capabilities": event.capabilities, "container": event.container}
    yield (
        "faint",
        f"[host] {shown_json({name: part for name, part in parts.items() if part is not UNSET}, limits.words)}",
    )


def _metadata(event: MessageMetadata, limits: Limits) -> Iterator[Line]:
    yield "faint", f"[metadata] {shown_members(event.metadata, limits.words)}"


def _display(event: DisplayRequired, _: Limits) -> Iterator[Line]:
    size = shown_size(len(event.html), "characters")
    yield "warning", f"[{shown_word(event.provider)} requires a client to display {size} of HTML]"


def _step(event: StepStart, _: Limits) -> Iterator[Line]:
    if event.step_name:
        yield "faint", f"[step] {shown_word(event.step_name)}"


def _state(event: StateSnapshot, limits: Limits) -> Iterator[Line]:
    yield "faint", f"[state] {shown_json(event.snapshot, limits.words)}"


def _state_change(event: StateDelta, limits: Limits) -> Iterator[Line]:
    yield "faint", f"[state] {_change(event.patch, limits)}"


def _memory(event: MemoryWrite, limits: Limits) -> Iterator[Line]:
    name = f"{event.scope} {shown_word(event.key)}" if event.key else event.scope
    if event.value is UNSET:
        value = _change(event.patch, limits)
    else:
        value = shown_named(event.key or "", event.value, limits.words)
    why = f" ({cut(shown_word(event.reason), limits.words)})" if event.reason else ""
    yield "faint", f"[memory] {name}: {value}{why}"


def _change(patch: Any, limits: Limits) -> str:
    """A JSON Patch by its operations and places, any other change by its value."""
    if not _is_list(patch) or not all(_is_object(each) for each in patch):
        return shown_json(patch, limits.words)
    changes = [f"{shown_word(str(each.get('op')))} {shown_word(str(each.get('path')))}" for each in patch]
    more = f", … ({len(changes) - _SHOWN_CHANGES} more)" if len(changes) > _SHOWN_CHANGES else ""
    return f"{cut(', '.join(changes[:_SHOWN_CHANGES]), limits.words)}{more}"


def _ui_call(event: UiCall, limits: Limits) -> Iterator[Line]:
    args = "" if event.args is UNSET else f" {shown_json(event.args, limits.words)}"
    yield "faint", f"[surface {shown_word(event.surface_id)}] call {shown_word(event.method)}{args}"


def _ui_result(event: UiResult, limits: Limits) -> Iterator[Line]:
    name = shown_word(event.method or event.call_id)
    yield _reply(event.surface_id, f"result of {name}", event.value, event.error, limits)


def _ui_action(event: UiActionResult, limits: Limits) -> Iterator[Line]:
    yield _reply(event.surface_id, f"reply to {shown_word(event.action_id)}", event.value, event.error, limits)


def _reply(surface: str, what: str, value: Any, error: AgUiError | None, limits: Limits) -> Line:
    head = f"[surface {shown_word(surface)}] {what}"
    if error is not None:
        return "bad", f"{head}: {shown_word(error.message)} ({shown_word(error.code)})"
    return "faint", head if value is UNSET else f"{head}: {shown_json(value, limits.words)}"


def _widget(event: UiWidgetResult, limits: Limits) -> Iterator[Line]:
    result = cut(shown_word(event.result), limits.words)
    yield "faint", f"[surface {shown_word(event.surface_id)}] result of {shown_word(event.call_id)}: {result}"


def _display_mode(event: UiDisplayMode, _: Limits) -> Iterator[Line]:
    name = shown_word(event.surface_id or event.tool_call_id or "")
    mode = f"shown {event.granted}" if event.granted else f"asks to be shown {event.mode}"
    yield "faint", f"[surface {name}] {mode}" if name else f"[surface] {mode}"


def _surface_start(event: UiSurfaceStart, _: Limits) -> Iterator[Line]:
    yield "faint", f"[surface {shown_word(event.surface_id)}] opens, catalog {shown_word(event.catalog_id)}"


def _surface_update(event: UiSurfaceUpdate, limits: Limits) -> Iterator[Line]:
    yield "faint", f"[surface {shown_word(event.surface_id)}] {shown_json(event.components, limits.words)}"


def _surface_end(event: UiSurfaceEnd, _: Limits) -> Iterator[Line]:
    yield "faint", f"[surface {shown_word(event.surface_id)}] closes"


def _data_model(event: UiDataModel, limits: Limits) -> Iterator[Line]:
    value = "deleted" if event.value is UNSET else shown_named(event.path or "/", event.value, limits.words)
    yield "faint", f"[surface {shown_word(event.surface_id)}] data at {shown_word(event.path or '/')}: {value}"


def _auth_words(auth: AgAuthConfig) -> str:
    words = [f"login by {shown_word(auth.scheme)}"]
    words += [f"scopes {', '.join(shown_word(scope) for scope in auth.scopes)}"] if auth.scopes else []
    words += [f"for {shown_word(auth.audience)}"] if auth.audience else []
    words += [f"at {shown_url(auth.authorization_url)}"] if auth.authorization_url else []
    return ", ".join(words)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


_TELLERS: Mapping[str, Callable[[Any, Limits], Iterator[Line]]] = {
    ErrorEvent.type: _error,
    SourceEvent.type: _source,
    HandoffEvent.type: _handoff,
    GuardrailResult.type: _guardrail,
    PromptBlocked.type: _prompt_blocked,
    AgentCapabilities.type: _agent,
    HostContext.type: _host,
    MessageMetadata.type: _metadata,
    DisplayRequired.type: _display,
    StepStart.type: _step,
    StateSnapshot.type: _state,
    StateDelta.type: _state_change,
    MemoryWrite.type: _memory,
    UiCall.type: _ui_call,
    UiResult.type: _ui_result,
    UiActionResult.type: _ui_action,
    UiWidgetResult.type: _widget,
    UiDisplayMode.type: _display_mode,
    UiSurfaceStart.type: _surface_start,
    UiSurfaceUpdate.type: _surface_update,
    UiSurfaceEnd.type: _surface_end,
    UiDataModel.type: _data_model,
}
