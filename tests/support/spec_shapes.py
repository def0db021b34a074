"""The shapes that the specification declares in its TypeScript blocks, and the same view of our classes.

Both sides are brought to one comparable form (`Form`), so that a test can say that a class has exactly the fields of
the specification, with the same types, required where they are required.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

import agjson.types as t

Form = Any
"""One of ``"string"``, ``"number"``, ``"boolean"``, ``"unknown"``, ``"providerMetadata"``, ``("lit", value)``,
``("list", form)``, ``("map", form)``, ``("object", {name: (optional, form)})``, the name of a declared type, a
frozenset of alternatives, or ``("any-of", alternatives)`` where objects are among them."""

Fields = dict[str, tuple[bool, Form]]
"""Wire name to whether it is optional, and its form."""

_TOKEN = re.compile(r'"[^"]*"|`[^`]*`|[A-Za-z_]\w*|\[\]|[{}()\[\]|&;:?,<>=]')
_LITERAL_ALIASES = {"AgRole", "AgFinishReason"}
_PLAIN = {"string", "number", "boolean", "unknown"}
# Unions that are not one class here, by their members; and the two whose field type is a marker class.
_UNIONS = {
    frozenset(typing.get_args(union)): name
    for name, union in {
        "AgBlock": t.AgBlock,
        "AgSource": t.AgSource,
        "AgCitation": t.AgCitation,
        "AgOutcome": t.AgOutcome,
    }.items()
}
_MARKERS: dict[Any, str] = {t.SourcePayload: "AgSourcePayload", t.SurfaceInteraction: "AgSurfaceInteraction"}


@dataclass
class Spec:
    """Every declared type: its expression, as nested tuples."""

    types: dict[str, Any] = field(default_factory=dict)

    def variants(self, name: str) -> list[Fields]:
        """The object shapes that a declared type consists of, one per arm."""
        return [self._fields(members) for members in self._variants(self.types[name])]

    def _variants(self, expr: Any) -> list[dict[str, Any]]:
        kind = expr[0]
        if kind == "object":
            return [expr[1]]
        if kind == "name":
            return self._variants(self.types[expr[1]])
        if kind == "omit":
            return [{k: v for k, v in arm.items() if k != expr[2]} for arm in self._variants(expr[1])]
        if kind == "union":
            return [arm for part in expr[1] for arm in self._variants(part)]
        if kind == "both":
            arms: list[dict[str, Any]] = [{}]
            for part in expr[1]:
                arms = [{**left, **right} for left in arms for right in self._variants(part)]
            return arms
        raise AssertionError(expr)

    def _fields(self, members: dict[str, Any]) -> Fields:
        return {name: (optional, self.form(expr)) for name, (optional, expr) in members.items()}

    def form(self, expr: Any) -> Form:
        kind = expr[0]
        if kind == "name":
            name = expr[1]
            if name in _PLAIN:
                return name
            if name == "true":
                return "boolean"
            if name == "AgMeta":
                return ("map", "unknown")
            if name == "AgProviderMeta":
                return "providerMetadata"
            return self.form(self.types[name]) if name in _LITERAL_ALIASES else name
        if kind == "lit":
            return expr
        if kind in ("list", "map"):
            return (kind, self.form(expr[1]))
        if kind == "object":
            return ("object", self._fields(expr[1]))
        if kind == "union":
            return alternatives([self.form(part) for part in expr[1]])
        raise AssertionError(expr)


def alternatives(forms: list[Form]) -> Form:
    """One form of several: objects stay a list, since a frozenset cannot hold them."""
    if any(isinstance(form, tuple) and form[0] == "object" for form in forms):
        return ("any-of", sorted(forms, key=repr))
    found = frozenset(forms)
    if "string" in found:  # a literal beside ``string`` adds nothing
        found = frozenset(form for form in found if not (isinstance(form, tuple) and form[0] == "lit"))
    return next(iter(found)) if len(found) == 1 else found


def read_spec(path: Path) -> Spec:
    """Every type that the specification declares."""
    spec = Spec()
    for block in re.findall(r"```ts\n(.*?)```", path.read_text(), re.DOTALL):
        code = re.sub(r"//[^\n]*", "", block)
        if re.match(r"\s*(type|interface) ", code):
            _Parser(spec, _TOKEN.findall(code)).statements()
    return spec


class _Parser:
    def __init__(self, spec: Spec, tokens: list[str]) -> None:
        self._spec = spec
        self._tokens = [part for token in tokens for part in (("[", "]") if token == "[]" else (token,))]
        self._at = 0

    def statements(self) -> None:
        while self._at < len(self._tokens):
            keyword, name = self._next(), self._next()
            if keyword == "type":
                self._expect("=")
                self._spec.types[name] = self._type()
                self._expect(";")
            else:
                assert keyword == "interface", keyword
                self._spec.types[name] = self._primary()

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str) -> None:
        found = self._next()
        assert found == token, (found, token, self._tokens[self._at - 8 : self._at + 4])

    def _type(self) -> Any:
        if self._peek() == "|":
            self._next()
        parts = [self._both()]
        while self._peek() == "|":
            self._next()
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else ("union", parts)

    def _both(self) -> Any:
        parts = [self._postfix()]
        while self._peek() == "&":
            self._next()
            parts.append(self._postfix())
        return parts[0] if len(parts) == 1 else ("both", parts)

    def _postfix(self) -> Any:
        expr = self._primary()
        while self._peek() == "[":
            self._next()
            self._expect("]")
            expr = ("list", expr)
        return expr

    def _primary(self) -> Any:
        token = self._next()
        if token == "{":
            return ("object", self._members())
        if token == "(":
            expr = self._type()
            self._expect(")")
            return expr
        if token.startswith(('"', "`")):
            return ("lit", token[1:-1])
        if self._peek() != "<":
            return ("name", token)
        self._next()
        arguments = [self._type()]
        while self._peek() == ",":
            self._next()
            arguments.append(self._type())
        self._expect(">")
        if token == "Record":
            return ("map", arguments[1])
        if token == "Omit":
            return ("omit", arguments[0], arguments[1][1])
        assert token == "Array", token
        return ("list", arguments[0])

    def _members(self) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while self._peek() != "}":
            name = self._next()
            if name == "readonly":
                name = self._next()
            if name == "[":  # an index signature: the members are open
                while self._next() != "]":
                    pass
                self._expect(":")
                self._type()
            else:
                optional = self._peek() == "?"
                if optional:
                    self._next()
                self._expect(":")
                members[name] = (optional, self._type())
            if self._peek() in (";", ","):
                self._next()
        self._next()
        return members


def class_fields(cls: type[msgspec.Struct], spec: Spec) -> Fields:
    """The wire fields of one of our classes, its tag among them."""
    found: Fields = {}
    config = cls.__struct_config__
    if config.tag is not None:
        found[str(config.tag_field)] = (False, ("lit", config.tag))
    for info in msgspec.structs.fields(cls):
        found[info.encode_name] = (not info.required, _python_form(info.type, spec))
    return found


def _python_form(annotation: Any, spec: Spec) -> Form:
    if annotation in _MARKERS:
        return _MARKERS[annotation]
    if annotation is t.AgProviderMeta:
        return "providerMetadata"
    plain = {str: "string", bool: "boolean", Any: "unknown"}
    if annotation in plain:
        return plain[annotation]
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return "number"
    if origin is Literal:
        return alternatives([("lit", value) for value in arguments])
    if origin is list:
        return ("list", _python_form(arguments[0], spec))
    if origin is dict:
        return ("map", _python_form(arguments[1], spec))
    if origin in (typing.Union, types.UnionType):
        return _union_form([part for part in arguments if part is not msgspec.UnsetType], spec)
    if annotation.__name__ in spec.types:
        return annotation.__name__
    return ("object", class_fields(annotation, spec))


def _union_form(parts: list[Any], spec: Spec) -> Form:
    if Any in parts:
        return "unknown"
    for members, name in _UNIONS.items():
        if members <= set(parts):
            return alternatives([name, *(_python_form(part, spec) for part in parts if part not in members)])
    if int in parts and float in parts:
        return alternatives(["number", *(_python_form(part, spec) for part in parts if part not in (int, float))])
    return alternatives(list(_flat(_python_form(part, spec) for part in parts)))


def _flat(forms: Iterator[Form]) -> Iterator[Form]:
    for form in forms:
        if isinstance(form, frozenset):
            yield from form
        else:
            yield form
