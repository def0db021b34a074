"""Pydantic and FastAPI read, write and document the wire types through `agjson.wire` (spec §0.2, §3, §4).

A Struct means nothing to pydantic, and FastAPI takes one for a query parameter. `Bridge`, beside the type in
``Annotated``, tells both what to do::

    @app.post("/runs")
    async def run(ag_input: Annotated[AgInput, Bridge(AgInput), Body()]) -> RunReply: ...

Importing this module does not import pydantic.
"""

from __future__ import annotations

import math
import re
import reprlib
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard, cast

from agjson.errors import AgJSONError, DecodeError, EncodeError, MissingExtraError, UnknownTypeError, ValidationError
from agjson.schema import definitions, schema_name
from agjson.types import (
    AgBlock,
    AgEvent,
    AgHitlAnswer,
    AgInput,
    AgMessage,
    AgPausedAsk,
    AgReduceResult,
    ExtEvent,
)
from agjson.wire import from_dict, to_dict
from agjson.wire.reading import Kind

if TYPE_CHECKING:
    import pydantic_core
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core.core_schema import CoreSchema

__all__ = ["Bridge"]

# What the wire reads as a whole, and the classes that can come of it.
_KINDS: Mapping[Kind, tuple[Any, ...]] = {
    "event": (*typing.get_args(AgEvent), ExtEvent),
    "block": typing.get_args(AgBlock),
    "input": typing.get_args(AgInput),
    "message": (AgMessage,),
    "result": (AgReduceResult,),
    "answer": (AgHitlAnswer,),
    "ask": (AgPausedAsk,),
}
_READ = cast("Callable[[Any, Kind], Any]", from_dict)
_COMPONENTS = "agjson_components"
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|\.?([^.\[\]]+)|.")


class Bridge:
    """Marks a type in ``Annotated`` so that pydantic and FastAPI handle it: ``Annotated[AgInput, Bridge(AgInput)]``.

    It serves in a model field, a `TypeAdapter`, a FastAPI body (with ``Body()``) and a response model.

    * Validation takes an instance, or plain data as ``json`` gives it, and applies every rule of `agjson.wire`: unknown
      fields are kept, an error carries its place as ``loc``. Text is read by ``validate_json`` alone, never as a value:
      FastAPI hands the body of a ``text/plain`` request over as bytes, and any web page can send one unasked.
    * Serialisation gives the wire form, camelCase, absent fields absent, in Python mode too.
    * The JSON Schema is that of `agjson.schema`; every type becomes a component of its own name.

    Args:
        tp: `AgInput`, `AgEvent`, `AgStreamEvent` (with `ExtEvent`), `AgBlock`, `AgMessage`, `AgReduceResult`,
            `AgHitlAnswer`, `AgPausedAsk`, or some arms of one of these (``StartInput``, ``StartInput | ResumeInput``).

    Raises:
        MissingExtraError: pydantic is not installed.
        AgJSONError: the type is none of these.
    """

    __slots__ = ("_classes", "_kind", "_names")

    def __init__(self, tp: Any) -> None:
        try:
            import pydantic_core  # noqa: F401  # pyright: ignore[reportUnusedImport]
        except ImportError:
            raise MissingExtraError("serve", "pydantic") from None
        self._classes: tuple[type, ...] = typing.get_args(tp) or (tp,)
        self._kind: Kind = _kind_of(tp, self._classes)
        name = schema_name(tp)
        self._names = [cls.__name__ for cls in self._classes] if name is None else [name]

    def __repr__(self) -> str:
        return f"Bridge({' | '.join(self._names)})"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """How pydantic validates and serialises the type; called by pydantic."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            self._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(to_dict),
            metadata={_COMPONENTS: [_component(*each, handler) for each in definitions(self._names).items()]},
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The JSON Schema of the type, its parts registered as components; called by pydantic."""
        from pydantic_core import core_schema

        arms = [core_schema.definition_reference_schema(_core_ref(name)) for name in self._names]
        root = arms[0] if len(arms) == 1 else core_schema.union_schema(list(arms))
        return handler(core_schema.definitions_schema(root, schema.get("metadata", {})[_COMPONENTS]))

    def _validate(self, value: Any) -> Any:
        if isinstance(value, self._classes):
            return value
        try:
            if isinstance(value, (str, bytes, bytearray)):
                raise ValidationError("Expected an object, got text: send JSON as application/json")
            found = _READ(value, self._kind)
            if not isinstance(found, self._classes):
                raise ValidationError(f"Expected {' or '.join(self._names)}, got {type(found).__name__}")
        except (DecodeError, EncodeError) as error:
            raise _pydantic_error(error, value, repr(self)) from None
        return found


class _Component:
    """One type of the format as pydantic knows it: any value, with a schema of its own."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return cast("dict[str, Any]", _with_references(self._schema, handler))


def _component(name: str, schema: dict[str, Any], handler: GetCoreSchemaHandler) -> CoreSchema:
    if name == "AgEvent":  # in Python the union leaves ExtEvent out
        schema["oneOf"].remove({"$ref": "#/$defs/ExtEvent"})
    component: Any = handler.generate_schema(Annotated[Any, _Component(schema)])
    component["ref"] = _core_ref(name)
    return cast("CoreSchema", component)


def _core_ref(name: str) -> str:
    return f"agjson.{name}:0"


def _with_references(schema: Any, handler: GetJsonSchemaHandler) -> Any:
    """The schema with the references that pydantic, or FastAPI, gives to its components."""
    from pydantic_core import core_schema

    if _is_list(schema):
        return [_with_references(item, handler) for item in schema]
    if not _is_object(schema):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "$ref":
            target = core_schema.definition_reference_schema(_core_ref(value.rpartition("/")[2]))
            found |= handler(target)
        else:
            found[key] = _with_references(value, handler)
    return found


def _kind_of(tp: Any, classes: tuple[type, ...]) -> Kind:
    for kind, known in _KINDS.items():
        if set(classes) <= set(known):
            return kind
    raise AgJSONError(
        f"Bridge cannot read {tp!r}: it takes AgInput, AgEvent, AgStreamEvent, AgBlock, AgMessage, AgReduceResult,"
        " AgHitlAnswer, AgPausedAsk, or arms of one of them"
    )


def _pydantic_error(error: DecodeError | EncodeError, value: Any, title: str) -> pydantic_core.ValidationError:
    from pydantic_core import InitErrorDetails, PydanticCustomError
    from pydantic_core import ValidationError as PydanticError

    name = "agjson_unknown_type" if isinstance(error, UnknownTypeError) else "agjson_invalid"
    location, found = _locate(error.path, value)
    message = _utf8(error.message)
    kind = PydanticCustomError(name, message)  # pyright: ignore[reportArgumentType]  # it asks for a literal
    return PydanticError.from_exception_data(title, [InitErrorDetails(type=kind, loc=location, input=_shown(found))])


def _locate(path: str, value: Any) -> tuple[tuple[str | int, ...], Any]:
    """A JSON path as pydantic's ``loc``, and the value there.

    Keys stand in the path as they are, so a key with a dot in it is known only by looking into the data.
    """
    location: list[str | int] = []
    rest = path.removeprefix("$")
    while rest:
        if _is_object(value):
            keys = [key for key in value if f"{rest}.".startswith((f".{key}.", f".{key}["))]
            if keys:
                key = max(keys, key=len)
                location.append(_utf8(key))
                rest, value = rest[len(key) + 1 :], value[key]
                continue
        step = _STEP.match(rest)
        assert step is not None
        rest = rest[step.end() :]
        if step[1] is not None and step[1] != "...":
            location.append(int(step[1]))
            value = value[int(step[1])] if _is_list(value) else value
        elif step[2] is not None:
            location.append(_utf8(step[2]))
    return tuple(location), value


def _is_object(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, (list, tuple))


def _shown(value: Any) -> Any:
    """The value as an error report can show it: FastAPI echoes it as JSON, and must not fail on what was refused."""
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _utf8(value) if isinstance(value, str) else reprlib.repr(value)


def _utf8(text: str) -> str:
    """The text with half characters written as escapes: pydantic takes no others."""
    return text.encode("utf-8", "backslashreplace").decode()
