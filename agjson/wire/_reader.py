"""The careful reader: any wire type from raw JSON, unknown fields kept, every error with its path.

The fast decoders of msgspec read nearly everything. What they refuse comes here: a text with unknown fields, which is
fine, or a faulty one, for which this reader finds the place and the words. It follows the declared types, so a new
type needs no code here.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from agjson.errors import UnknownTypeError, ValidationError
from agjson.types import (
    SURFACE_ARMS,
    AgBlock,
    AgStruct,
    BareUrlSource,
    Base64Source,
    DocumentSource,
    FieldError,
    FileSource,
    SourcePayload,
    SurfaceInteraction,
    UnknownBlock,
    UrlSource,
)
from agjson.wire._extras import with_extra_fields
from agjson.wire._json import Text, elements, joined, kind, located, members, one_line, plain, shown

Members: TypeAlias = dict[str, msgspec.Raw]


class Reader(Protocol):
    """Reads one type: raw text, its path, and whether the lenient rules of ingestion hold."""

    def __call__(self, raw: Text, path: str, lenient: bool, /) -> Any: ...


@cache
def reader(tp: Any) -> Reader:
    """The reader of a declared type."""
    if isinstance(tp, type) and tp in _MARKERS:
        return _MARKERS[tp]
    if isinstance(tp, type) and issubclass(tp, AgStruct):
        return struct_reader(tp)
    if not _holds_structs(tp):
        return _leaf(tp)
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin is list:
        return _list_of(args[0])
    if origin is dict:
        return _map_of(args[1])
    if origin is typing.Annotated:
        return reader(args[0])
    return _union(args)


@cache
def struct_reader(cls: type[AgStruct]) -> StructReader:
    """The reader of a class, one for all its uses."""
    return StructReader(cls)


class StructReader:
    """Reads an object into its class; the tables are made at the first use, since types refer to each other."""

    def __init__(self, cls: type[AgStruct]) -> None:
        self._cls = cls
        self.tag_field: str | None = cls.__struct_config__.tag_field
        self.tag: Any = cls.__struct_config__.tag
        self._fields: dict[str, tuple[str, Reader]] | None = None
        self._required: tuple[tuple[str, str], ...] = ()

    def __call__(self, raw: Text, path: str, lenient: bool, /) -> Any:
        return self.build(members(raw, path), path, lenient)

    def build(self, found: Members, path: str, lenient: bool) -> Any:
        """The object with these members; a tag among them is checked."""
        fields = self._fields if self._fields is not None else self._compile()
        known: dict[str, Any] = {}
        extra: dict[str, msgspec.Raw] = {}
        for key, raw in found.items():
            field = fields.get(key)
            if field is not None:
                known[field[0]] = field[1](raw, f"{path}.{key}", lenient)
            elif key == self.tag_field:
                self._check_tag(raw, f"{path}.{key}")
            else:
                extra[key] = raw
        if self.tag_field is not None and self.tag_field not in found:
            raise ValidationError(f"Object missing required field `{self.tag_field}`", path)
        for name, wire_name in self._required:
            if name not in known:
                raise ValidationError(f"Object missing required field `{wire_name}`", path)
        if lenient and known.get("finish_reason") == "unknown":
            _keep_finish_reason(found["finishReason"], path, known, extra, has_meta="_meta" in fields)
        try:
            if extra:
                return with_extra_fields(self._cls, known, extra)
            return self._cls(**known)
        except FieldError as error:
            raise ValidationError(str(error), f"{path}.{error.field}") from None

    def _check_tag(self, raw: Text, path: str) -> None:
        value = _text(raw, path)
        if value != self.tag:
            raise ValidationError(f"Invalid value {shown(value)}", path)

    def _compile(self) -> dict[str, tuple[str, Reader]]:
        infos = msgspec.structs.fields(self._cls)
        self._required = tuple((info.name, info.encode_name) for info in infos if info.required)
        self._fields = {}
        for info in infos:
            read: Reader = reader(info.type)
            if info.encode_name == "finishReason":
                read = _finish_reason(read)
            self._fields[info.encode_name] = (info.name, read)
        return self._fields


class UnionReader:
    """Reads a tagged union by its discriminant."""

    def __init__(self, arms: Mapping[str, type[AgStruct]], tag_field: str, *, noun: str) -> None:
        self._arms = {tag: struct_reader(arm) for tag, arm in arms.items()}
        self._tag_field = tag_field
        self._noun = noun

    def __call__(self, raw: Text, path: str, lenient: bool, /) -> Any:
        found = members(raw, path)
        tag = discriminant(found, self._tag_field, path)
        arm = self._arms.get(tag)
        if arm is not None:
            return arm.build(found, path, lenient)
        if lenient and self._noun == "block":
            return UnknownBlock(tag, one_line(raw))
        raise UnknownTypeError(f"Unknown {self._noun} {self._tag_field} {shown(tag)}", f"{path}.{self._tag_field}", tag)


def discriminant(found: Members, field: str, path: str) -> str:
    """The string that tells which arm of a union an object is."""
    if field not in found:
        raise ValidationError(f"Object missing required field `{field}`", path)
    return _text(found[field], f"{path}.{field}")


def _text(raw: Text, path: str) -> str:
    value = plain(raw, path)
    if not isinstance(value, str):
        raise ValidationError(f"Expected `str`, got `{kind(raw)}`", path)
    return value


def _holds_structs(tp: Any) -> bool:
    if isinstance(tp, type) and not typing.get_args(tp):
        return issubclass(tp, AgStruct) or tp in _MARKERS
    return any(_holds_structs(arg) for arg in typing.get_args(tp) if typing.get_origin(tp) is not Literal)


def _leaf(tp: Any) -> Reader:
    decoder = msgspec.json.Decoder(tp)

    def read(raw: Text, path: str, lenient: bool, /) -> Any:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise ValidationError(*located(error, raw, path)) from None
        except (msgspec.DecodeError, RecursionError):
            value = plain(raw, path)
        try:  # the text holds half an emoji: check the type of what the standard library read
            return msgspec.convert(value, tp)
        except msgspec.ValidationError as error:
            raise ValidationError(*located(error, raw, path)) from None
        except UnicodeError:  # msgspec compares with the words of an enum in UTF-8
            if typing.get_origin(tp) is list:
                return _list_of(typing.get_args(tp)[0])(raw, path, lenient)
            raise ValidationError(f"Invalid value {shown(value)}", path) from None

    return read


def _list_of(tp: Any) -> Reader:
    item = reader(tp)

    def read(raw: Text, path: str, lenient: bool, /) -> Any:
        return [item(part, f"{path}[{index}]", lenient) for index, part in enumerate(elements(raw, path))]

    return read


def _map_of(tp: Any) -> Reader:
    def read(raw: Text, path: str, lenient: bool, /) -> Any:
        item = reader(tp)  # looked up late: AgUsage holds a map of itself
        return {key: item(part, f"{path}.{key}", lenient) for key, part in members(raw, path).items()}

    return read


def _union(args: tuple[Any, ...]) -> Reader:
    """A union with Structs in it: tagged arms, or one object type beside strings, lists and numbers."""
    args = tuple(arg for arg in args if arg is not msgspec.UnsetType)
    structs = [arg for arg in args if isinstance(arg, type) and issubclass(arg, AgStruct)]
    rest = [arg for arg in args if arg not in structs]
    objects: Reader | None = None
    if len(structs) > 1:
        field = str(structs[0].__struct_config__.tag_field)
        tags = {str(arm.__struct_config__.tag): arm for arm in structs}
        objects = UnionReader(tags, field, noun="block" if set(structs) == _BLOCKS else "object")
    elif structs:
        objects = reader(structs[0])
    lists = next((reader(arg) for arg in rest if typing.get_origin(arg) is list), None)
    simple = [arg for arg in rest if typing.get_origin(arg) is not list]
    other = _leaf(typing.Union[tuple(simple)]) if simple else None  # noqa: UP007  # made at run time

    def read(raw: Text, path: str, lenient: bool, /) -> Any:
        shape = kind(raw)
        chosen = objects if shape == "object" else lists if shape == "array" else other
        if chosen is None:
            chosen = other or objects or lists
        assert chosen is not None
        return chosen(raw, path, lenient)

    return objects if objects is not None and not rest else read


def _finish_reason(strict: Reader) -> Reader:
    """On ingestion an unknown reason reads as ``unknown``; `_keep_finish_reason` puts the original into ``_meta``."""

    def read(raw: Text, path: str, lenient: bool, /) -> Any:
        try:
            return strict(raw, path, lenient)
        except ValidationError:
            if not lenient or kind(raw) != "str":
                raise
            return "unknown"

    return read


def _keep_finish_reason(raw: msgspec.Raw, path: str, known: dict[str, Any], extra: Members, *, has_meta: bool) -> None:
    original = _text(raw, path)
    if original == "unknown":
        return
    if has_meta:
        known["meta"] = {**(known.get("meta") or {}), "agjson/finishReason": original}
        return
    # A turn record has no _meta of its own: it rides as one more unknown field, beside one that is no object.
    bag = extra.get("_meta", msgspec.Raw(b"{}"))
    if kind(bag) == "object":
        kept = members(bag, f"{path}._meta")
        kept["agjson/finishReason"] = raw
        extra["_meta"] = msgspec.Raw(b"{%b}" % joined(kept))
    else:
        extra["agjson/finishReason"] = raw


def _source_payload(raw: Text, path: str, lenient: bool, /) -> Any:
    """A source without a ``type`` is a bare URL; with one it is one of the named forms (spec §2)."""
    found = members(raw, path)
    if "type" not in found:
        return reader(BareUrlSource)(raw, path, lenient)
    return _SOURCES(raw, path, lenient)


def _surface(raw: Text, path: str, lenient: bool, /) -> Any:
    """A surface interaction: ``surface``, then ``a2uiMessage`` or ``method`` (spec §3)."""
    found = members(raw, path)
    surface = discriminant(found, "surface", path)
    inner = "a2uiMessage" if surface == "a2ui" else "method"
    if surface not in {known for known, _ in SURFACE_ARMS}:
        raise UnknownTypeError(f"Unknown surface {shown(surface)}", f"{path}.surface", surface)
    name = discriminant(found, inner, path)
    arm = SURFACE_ARMS.get((surface, name))
    if arm is None:
        raise UnknownTypeError(f"Unknown {surface} {inner} {shown(name)}", f"{path}.{inner}", name)
    return reader(arm)(raw, path, lenient)


_BLOCKS = set(typing.get_args(AgBlock))
_MARKERS: dict[type, Reader] = {SourcePayload: _source_payload, SurfaceInteraction: _surface}
_SOURCES = UnionReader(
    {"base64": Base64Source, "url": UrlSource, "file": FileSource, "document": DocumentSource}, "type", noun="source"
)
