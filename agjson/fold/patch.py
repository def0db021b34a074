"""JSON Patch (RFC 6902) on opaque values: strict, atomic, and without a change to the document that it is given.

The `jsonpatch` package makes the edits. Two things are done around it: only the containers that an operation reaches
are copied, since a copy of the whole document would cost the size of the state for each small patch; and what the
package takes and the RFC does not is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agjson.errors import AgJSONError
from agjson.fold._json import is_array, is_object, same_value

if TYPE_CHECKING:
    from jsonpointer import JsonPointer

__all__ = ["PatchError", "apply_patch"]

_INDEX = re.compile("0|[1-9][0-9]{0,17}")


class PatchError(AgJSONError, ValueError):
    """A patch that cannot be applied; the document is as it was (RFC 6902 §5)."""


def apply_patch(document: Any, patch: Any) -> Any:
    """Apply a JSON Patch to a copy that shares with the document all that the patch does not touch.

    Where the RFC leaves room: ``test`` tells ``true`` from ``1`` and takes ``1`` and ``1.0`` for equal; an array index
    has no leading zero; the whole document can be replaced, but not removed.

    Args:
        document: any JSON value.
        patch: a list of operations, not checked before; a hostile one fails like any other.

    Returns:
        The patched value.

    Raises:
        PatchError: an operation is malformed or fails.
    """
    if not is_array(patch):
        raise PatchError("a JSON Patch is a list of operations")
    draft = _Draft(document)
    for number, operation in enumerate(patch):
        try:
            draft.apply(operation)
        except PatchError as error:
            raise PatchError(f"operation {number} of the patch: {error}") from None
        except Exception as error:  # the package's own errors, and what hostile values make of it: too deep, no string
            raise PatchError(f"operation {number} of the patch: {type(error).__name__}: {str(error)[:200]}") from error
    return draft.root


class _Draft:
    """A document under change: each container is copied when an operation first reaches through it.

    Attributes:
        root: the document as it is now.
    """

    __slots__ = ("_owned", "root")

    def __init__(self, root: Any) -> None:
        self.root: Any = root
        # By identity; the copies are held so that no other object can come to have the identity of one.
        self._owned: dict[int, Any] = {}

    def apply(self, operation: Any) -> None:
        """Make one edit."""
        from jsonpatch import JsonPatch  # here, since most threads see no patch
        from jsonpointer import JsonPointer

        if not is_object(operation):
            raise PatchError("it is no object")
        pointers = {name: JsonPointer(operation[name]) for name in ("path", "from") if name in operation}
        edit = JsonPatch([operation])  # refuses an unknown `op` and one without a `path`
        kind, target = operation["op"], pointers["path"]
        if kind in ("add", "replace", "test") and "value" not in operation:
            raise PatchError("it has no `value`")
        if kind == "test":
            if not same_value(self._get(target), operation["value"]):
                raise PatchError("the tested value differs")
            return
        value = self._get(pointers["from"]) if kind in ("move", "copy") else operation.get("value")
        if kind == "move":
            self._loosen(pointers["from"])
        if not target.parts:
            if kind == "remove":
                raise PatchError("the whole document cannot be removed")
            self.root = value
            self._owned.clear()  # the value may hold containers of the old document, or be the patch's own
            return
        self._loosen(target)
        self.root = edit.apply(self.root, in_place=True)

    def _get(self, pointer: JsonPointer) -> Any:
        value: Any = self.root
        for token in pointer.parts:
            value = value[_key(value, token)]
        return value

    def _loosen(self, pointer: JsonPointer) -> None:
        """Copy the containers on the way to a pointer's target."""
        container: Any = self._own(self.root)
        self.root = container
        for token in pointer.parts[:-1]:
            key = _key(container, token)
            container[key] = container = self._own(container[key])
        if is_array(container) and pointer.parts and pointer.parts[-1] != "-":
            _index(pointer.parts[-1])

    def _own(self, value: Any) -> Any:
        if id(value) in self._owned:
            return value
        if is_object(value):
            copy: Any = dict(value)
        elif is_array(value):
            copy = value.copy()
        else:
            raise PatchError("its pointer leads through a value that holds nothing")
        self._owned[id(copy)] = copy
        return copy


def _key(container: Any, token: str) -> Any:
    """The key or index of an item on the way."""
    if is_object(container):
        return token
    if is_array(container):
        return _index(token)
    raise PatchError("its pointer leads through a value that holds nothing")


def _index(token: str) -> int:
    if not _INDEX.fullmatch(token):
        raise PatchError(f"{token[:80]!r} is no array index")
    return int(token)
