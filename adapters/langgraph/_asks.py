"""Interrupts of a graph become asks: one each, or one per action where a review covers several (spec §7)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agjson.adapters.langgraph._handles import CHECKPOINT_ID, INTERRUPT_ID, STATIC, VALUE
from agjson.adapters.langgraph._scope import Namespace
from agjson.adapters.langgraph._tasks import Task, Tasks
from agjson.emitter import Emitter
from agjson.jsonable import jsonable
from agjson.types import UNSET, AgChoice, AgMeta, AgResumeBinding, JsonValue, UnsetType

__all__ = ["DECISIONS", "Asks", "SeenInterrupt", "ordinal_of"]

DECISIONS = ("approve", "edit", "reject", "respond")
"""What a reviewer may decide about a tool call: the ids of the choices."""

_LABELS = {"approve": "Approve", "edit": "Edit", "reject": "Reject", "respond": "Respond"}
_WORDS = ("question", "message", "prompt", "query", "text", "description", "title")
_MOST_REPEATS = 64
# Of an interrupt; the last three are of older versions, which said by them what ids and namespaces say.
_MEMBERS = frozenset(("value", "id", "interrupt_id", "response_schema", "resumable", "ns", "when"))


@dataclass(slots=True)
class SeenInterrupt:
    """An interrupt, collected from all the frames that tell it.

    Attributes:
        id: its id; None where the framework gave none.
        value: what the graph handed out, as plain data.
        schema: the JSON Schema of the answer, if the graph names one.
        ns: the namespace of the graph in whose node it arose.
        task: the task of that node, where it is known.
        more: what else the framework says of it, which no version has said yet.
    """

    id: str | None
    value: JsonValue
    schema: JsonValue
    ns: Namespace
    task: Task | None
    more: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])


class Asks:
    """The interrupts of one invoke.

    They are told together when the native stream ends: only then it is known how many the graph waits for, and with
    that how they are answered (spec §7 resume binding).

    Args:
        out: the emitter.
        tasks: the tasks.
        turn_of: the turn of a namespace.
        gated_calls: the tool calls of the last answer that a graph has in its state, for reviews that name no call.
        has_call: whether the thread knows a tool call.
        resumable: the graph keeps its state, so that it can be resumed.
    """

    def __init__(
        self,
        out: Emitter,
        tasks: Tasks,
        turn_of: Callable[[Namespace], str],
        gated_calls: Callable[[SeenInterrupt], Sequence[dict[str, Any]]],
        has_call: Callable[[str], bool],
        *,
        resumable: bool = True,
    ) -> None:
        self._out = out
        self._tasks = tasks
        self._turn_of = turn_of
        self._gated_calls = gated_calls
        self._has_call = has_call
        self._resumable = resumable
        self._seen: dict[str, SeenInterrupt] = {}
        self._told = False
        # A static breakpoint was hit: LangGraph marks it by a frame of interrupts without any.
        self.stopped = False

    def __bool__(self) -> bool:
        return bool(self._seen)

    def see(self, interrupts: Any, ns: Namespace, task: Task | None = None) -> None:
        """Take a frame of interrupts; the same ones come again in other modes, and from every graph around.

        Args:
            interrupts: a sequence of ``Interrupt``, as objects or dicts.
            ns: the namespace of the graph that told them.
            task: the task that told them, if a task did.
        """
        if not isinstance(interrupts, (tuple, list)):
            interrupts = (interrupts,)
        for native in interrupts:
            id, value, schema = _read(native)
            key = id or f"value:{value!r}"
            known = self._seen.get(key)
            if known is None:
                plain_value, plain_schema = jsonable(value), jsonable(schema)
                self._seen[key] = SeenInterrupt(id, plain_value, plain_schema, ns, task, _unknown(native))
            elif len(ns) > len(known.ns) or (known.task is None and len(ns) == len(known.ns)):
                known.ns, known.task = ns, task or known.task

    def tell(self, handles: AgMeta) -> None:
        """Open an ask for each interrupt; once.

        Args:
            handles: where the graph can be resumed: `THREAD_ID`, `CHECKPOINT_ID` and `CHECKPOINT_NS`, as far as they
                are known.
        """
        if self._told:
            return
        self._told = True
        if not self._resumable:
            handles = {**handles, "langgraph/resumable": False}
        several = len(self._seen) > 1
        # Parallel branches stop in any order; their asks stand in the order in which LangGraph has started them.
        for seen in sorted(self._seen.values(), key=lambda each: self._tasks.index(each.task)):
            self._tell(seen, several, self._metadata(seen, handles))

    def tell_stop(self, handles: AgMeta, upcoming: Sequence[str]) -> None:
        """Open the ask of a static breakpoint (``interrupt_before``, ``interrupt_after``), which has no interrupt.

        Args:
            handles: as for `tell`.
            upcoming: the nodes that run when the graph goes on, as far as they are known.
        """
        checkpoint = handles.get(CHECKPOINT_ID)
        nodes = ", ".join(upcoming)
        metadata: AgMeta = {**handles, "langgraph/next": list(upcoming)}
        if not self._resumable:
            metadata["langgraph/resumable"] = False
        self._out.hitl_ask(
            "approval",
            ask_id=f"{STATIC}{checkpoint if isinstance(checkpoint, str) else self._out.turn_id}",
            message=f"Paused before {nodes}. Continue?" if nodes else "Paused. Continue?",
            metadata=metadata,
            continuation="resume",
            turn_id=self._out.turn_id,
        )

    def _metadata(self, seen: SeenInterrupt, handles: AgMeta) -> AgMeta:
        metadata: AgMeta = {VALUE: seen.value, **handles}
        if seen.id is not None:
            metadata[INTERRUPT_ID] = seen.id
        if seen.more:
            metadata["langgraph/interrupt"] = seen.more
        if seen.task is not None:
            metadata["langgraph/taskId"] = seen.task.id
        if seen.ns:
            metadata["langgraph/ns"] = list(seen.ns)
        return metadata

    def _tell(self, seen: SeenInterrupt, several: bool, metadata: AgMeta) -> None:
        value = seen.value
        if isinstance(value, dict):
            actions = value.get("action_requests")
            if isinstance(actions, list) and actions and isinstance(value.get("review_configs"), list):
                self._tell_review(seen, value, actions, metadata)
                return
        binding, ordinal = _binding(seen, several)
        if isinstance(value, dict) and value.get("type") == "tool_approval":
            self._tell_approval(seen, value, metadata, binding, ordinal)
            return
        schema = seen.schema
        if schema is None and isinstance(value, dict) and isinstance(value.get("schema"), dict):
            schema = value["schema"]
        choices = _choices(value) if schema is None else None
        call_id = self._tasks.call_of(seen.task)
        words = _words(value)
        # What asks for nothing in words takes any data: only a reply to a text has to be one.
        is_form = schema is not None or (choices is None and words is None and isinstance(value, (dict, list)))
        self._out.hitl_ask(
            "form" if is_form else "choice" if choices else "text",
            ask_id=seen.id,
            message=words,
            reason=value if isinstance(value, str) else None,
            schema=UNSET if schema is None else schema,
            choices=choices,
            tool_call_id=call_id if call_id is not None and self._has_call(call_id) else None,
            metadata=metadata,
            resume_binding=binding,
            ordinal=ordinal,
            continuation="resume",
            turn_id=self._turn_of(seen.ns),
        )

    def _tell_approval(
        self,
        seen: SeenInterrupt,
        value: dict[str, Any],
        metadata: AgMeta,
        binding: AgResumeBinding | None,
        ordinal: int | None,
    ) -> None:
        """The review of one call, which the human-in-the-loop middleware asks for as the call starts."""
        call_id = value.get("tool_call_id")
        known = isinstance(call_id, str) and self._has_call(call_id)
        allowed = _decisions_in(seen.schema) or DECISIONS
        if seen.schema is not None:
            metadata = {**metadata, "langgraph/responseSchema": seen.schema}
        self._out.hitl_ask(
            "approval",
            ask_id=seen.id,
            message=_words(value),
            choices=_decision_choices(allowed),
            tool_call_id=call_id if known else None,
            metadata=metadata,
            resume_binding=binding,
            ordinal=ordinal,
            continuation="resume",
            turn_id=self._turn_of(seen.ns),
        )

    def _tell_review(self, seen: SeenInterrupt, value: dict[str, Any], actions: list[Any], metadata: AgMeta) -> None:
        """The review of all gated calls of an answer at once: an ask per action, answered in their order."""
        calls = _matched(actions, self._gated_calls(seen))
        for index, action in enumerate(actions):
            call_id = calls[index]
            self._out.hitl_ask(
                "approval",
                ask_id=None if seen.id is None else f"{seen.id}#{index}",
                message=_words(action),
                choices=_decision_choices(_allowed(value["review_configs"], index, action)),
                tool_call_id=call_id if call_id is not None and self._has_call(call_id) else None,
                metadata=metadata,
                resume_binding="positional",
                ordinal=index,
                continuation="resume",
                turn_id=self._turn_of(seen.ns),
            )


def ordinal_of(id: str, path: str) -> int | None:
    """Which interrupt of its task this is, from 0: LangGraph makes the id from the path and the number of answers.

    Args:
        id: the interrupt's id.
        path: the path of its task.

    Returns:
        The ordinal; None where it cannot be told.
    """
    try:
        from xxhash import xxh3_128_hexdigest
    except ImportError:  # it comes with LangGraph, which may run elsewhere
        return None
    for count in range(_MOST_REPEATS):
        if xxh3_128_hexdigest((f"{path}|{count}" if count else path).encode()) == id:
            return count
    return None


def _read(native: Any) -> tuple[str | None, Any, Any]:
    """The id, value and schema of an interrupt: an object, or the dict that it was serialised to."""
    if isinstance(native, dict) and "value" in native:
        id, value, schema = native.get("id", native.get("interrupt_id")), native["value"], native.get("response_schema")
    elif hasattr(native, "value") and not isinstance(native, dict):
        id, value = getattr(native, "id", None), native.value
        schema = getattr(native, "response_schema", None)
    else:
        id, value, schema = None, native, None
    return id if isinstance(id, str) and id else None, value, schema


def _unknown(native: Any) -> dict[str, JsonValue]:
    """The members of a serialised interrupt that are none of those above."""
    if not isinstance(native, dict) or "value" not in native:
        return {}
    plain = jsonable({name: native[name] for name in native.keys() - _MEMBERS})
    return plain if isinstance(plain, dict) else {}


def _binding(seen: SeenInterrupt, several: bool) -> tuple[AgResumeBinding | None, int | None]:
    ordinal = None
    if seen.id is not None and seen.task is not None:
        ordinal = ordinal_of(seen.id, seen.task.path)
    if several:
        return "id", None
    return ("positional", ordinal) if ordinal else (None, None)


def _words(value: JsonValue) -> str | None:
    """What the user reads, where the value has it in words."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict):
        for name in _WORDS:
            if isinstance(said := value.get(name), str) and said:
                return said
    return None


def _choices(value: JsonValue) -> list[AgChoice] | None:
    """The options that a value offers in ``choices`` or ``options``."""
    if not isinstance(value, dict):
        return None
    offered = value.get("choices", value.get("options"))
    if not isinstance(offered, list) or not offered:
        return None
    choices: list[AgChoice] = []
    for each in offered:
        if isinstance(each, str):
            choices.append(AgChoice(id=each, label=each))
        elif isinstance(each, dict) and isinstance(id := each.get("id"), str):
            label = each.get("label")
            given: JsonValue | UnsetType = each.get("value", UNSET)
            choices.append(AgChoice(id=id, label=label if isinstance(label, str) else id, value=given))
        else:
            return None
    return choices if len({choice.id for choice in choices}) == len(choices) else None


def _decision_choices(allowed: Iterable[str]) -> list[AgChoice]:
    return [AgChoice(id=each, label=_LABELS.get(each, each)) for each in allowed]


def _allowed(configs: list[Any], index: int, action: Any) -> Sequence[str]:
    """The decisions allowed for an action: by its place, else by its name."""
    name = action.get("name") if isinstance(action, dict) else None
    config = configs[index] if index < len(configs) else None
    if not isinstance(config, dict) or config.get("action_name", name) != name:
        config = next((each for each in configs if isinstance(each, dict) and each.get("action_name") == name), {})
    allowed = config.get("allowed_decisions")
    names = [each for each in allowed if isinstance(each, str)] if isinstance(allowed, list) else []
    return names or DECISIONS


def _decisions_in(schema: JsonValue) -> list[str]:
    """The decisions that the schema of an answer knows: the constants of its member ``type``, at any depth."""
    found: set[str] = set()
    waiting: list[JsonValue] = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            properties = each.get("properties")
            kind = properties.get("type") if isinstance(properties, dict) else None
            if isinstance(kind, dict):
                named = kind.get("enum", [kind.get("const")])
                found.update(name for name in (named if isinstance(named, list) else []) if isinstance(name, str))
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each
    return [name for name in DECISIONS if name in found]


def _matched(actions: list[Any], calls: Sequence[dict[str, Any]]) -> list[str | None]:
    """The call that each action reviews: actions stand in the order of the calls, of which some need no review."""
    ids: list[str | None] = []
    left = list(calls)
    for action in actions:
        found: str | None = None
        wanted = (action.get("name"), action.get("args")) if isinstance(action, dict) else (None, None)
        for index, each in enumerate(left):
            if each.get("name") == wanted[0] and each.get("args") == wanted[1]:
                id = each.get("id")
                found = id if isinstance(id, str) else None
                del left[: index + 1]
                break
        ids.append(found)
    return ids
