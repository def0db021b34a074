"""JSON Patch (RFC 6902) on opaque values: strict, atomic, bounded, and without a change to the document it is given.

The `jsonpatch` package makes the edits. Around it, only the containers that an operation reaches are copied, since a
copy of the whole document would cost the size of the state for each small patch; and what the package takes and the RFC
does not is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agjson.errors import AgJSONError
from agjson.fold._json import extent, is_array, is_object, same_value

if TYPE_CHECKING:
    from jsonpointer import JsonPointer

__all__ = ["MAX_DEPTH", "MAX_SIZE", "PatchError", "apply_patch"]

MAX_DEPTH = 256
"""How many containers may nest inside one another where a patch has put a value: few enough to be written always."""

MAX_SIZE = 4_000_000
"""How many values and characters a document may come to that a patch with a `copy` leaves."""

_INDEX = re.compile("0|[1-9][0-9]{0,17}")


class PatchError(AgJSONError, ValueError):
    """A patch that cannot be applied; the document is as it was (RFC 6902 §5)."""


def apply_patch(document: Any, patch: Any) -> Any:
    """Apply a JSON Patch to a copy that shares with the document all that the patch does not touch.

    Where the RFC leaves room: ``test`` tells ``true`` from ``1`` and takes ``1`` and ``1.0`` for equal; an array index
    has no leading zero; the whole document can be replaced, but not removed.

    What a patch may build is limited, so that a few short operations cannot make a document which nothing can write.
    No value may be put so deep that more than `MAX_DEPTH` containers nest inside one another, and a document into which
    a container or a string was copied may hold at most `MAX_SIZE` values and characters of strings and keys, all copies
    counted; the edits to what was copied may copy as many values again. A patch that does none of this may change a
    document over these limits.

    Args:
        document: any JSON value.
        patch: a list of operations, not checked before; a hostile one fails like any other.

    Returns:
        The patched value; a copied value may be one object in several places.

    Raises:
        PatchError: an operation is malformed or fails, or the patch builds more than the limits allow. This depends on
            the document and the patch alone, never on the caller's stack.
    """
    if not is_array(patch):
        raise PatchError("a JSON Patch is a list of operations")
    draft = _Draft(document)
    for number, operation in enumerate(patch):
        try:
            draft.apply(operation)
        except PatchError as error:
            raise PatchError(f"operation {number} of the patch: {error}") from None
        except (RecursionError, MemoryError):
            raise  # the caller's stack or memory is used up, which says nothing about the patch
        except Exception as error:  # the package's own errors, and what malformed members make of it
            raise PatchError(f"operation {number} of the patch: {type(error).__name__}: {str(error)[:200]}") from error
    draft.check()
    return draft.root


class _Draft:
    """A document under change: each container is copied when an operation first reaches through it.

    Attributes:
        root: the document as it is now.
    """

    __slots__ = ("_built", "_copied", "_lent", "_owned", "root")

    def __init__(self, root: Any) -> None:
        self.root: Any = root
        # By identity; the copies are held so that no other object can come to have the identity of one. What is owned
        # stands in one place, which only owned containers lead to.
        self._owned: dict[int, Any] = {}
        self._built = False
        self._lent = False
        self._copied = 0

    def apply(self, operation: Any) -> None:
        """Make one edit."""
        from jsonpointer import JsonPointer  # here, since most threads see no patch

        if not is_object(operation):
            raise PatchError("it is no object")
        kind, target = operation["op"], JsonPointer(operation["path"])
        if kind in ("add", "replace", "test") and "value" not in operation:
            raise PatchError("it has no `value`")
        if kind == "test":
            if not same_value(self._get(target), operation["value"]):
                raise PatchError("the tested value differs")
        elif kind == "move":
            self._move(JsonPointer(operation["from"]), target)
        elif kind == "copy":
            value = self._get(JsonPointer(operation["from"]))
            self._lend(value)
            self._put("add", target, value)
        elif kind in ("add", "replace"):
            value = operation["value"]
            if len(target.parts) + extent(value, MAX_SIZE).depth > MAX_DEPTH:
                raise PatchError(f"more than {MAX_DEPTH} containers would nest inside one another")
            self._put(kind, target, value)
        elif target.parts or kind != "remove":
            self._edit(kind, target)
        else:
            raise PatchError("the whole document cannot be removed")

    def check(self) -> None:
        """Refuse a document that values of its own, put into further or deeper places, have made too large."""
        if self._built:
            size, depth = extent(self.root, MAX_SIZE)
            if depth > MAX_DEPTH:
                raise PatchError(f"the patch nests more than {MAX_DEPTH} containers inside one another")
            if self._copied and size > MAX_SIZE:
                raise PatchError(f"the patch builds more than {MAX_SIZE:,} values and characters")

    def _move(self, source: JsonPointer, target: JsonPointer) -> None:
        value = self._get(source)
        if source.parts == target.parts:
            return
        if source.parts == target.parts[: len(source.parts)]:
            raise PatchError("a value cannot be moved into itself")
        self._edit("remove", source)
        # The target is looked up in the document without the value, where later items have moved up (RFC 6902 §4.4).
        self._put("add", target, value)
        if len(target.parts) > len(source.parts):
            self._built = True

    def _put(self, kind: str, target: JsonPointer, value: Any) -> None:
        """Add or replace a value, which is not copied: it may be the patch's own, or stand elsewhere too."""
        if not target.parts:
            self.root = value
            return
        # The package copies the values that it adds, all the way down; so it makes room for a null.
        container = self._edit(kind, target)
        last = target.parts[-1]
        if is_array(container):
            container[-1 if last == "-" else int(last)] = value
        else:
            container[last] = value

    def _edit(self, kind: Any, target: JsonPointer) -> Any:
        """Make an edit that needs no value; returns the container in which it was made."""
        from jsonpatch import JsonPatch

        edit = JsonPatch([{"op": kind, "path": target.path, "value": None}])  # refuses an unknown `op`
        container = self._loosen(target)
        self.root = edit.apply(self.root, in_place=True)
        return container

    def _get(self, pointer: JsonPointer) -> Any:
        value: Any = self.root
        for token in pointer.parts:
            value = value[_key(value, token)]
        return value

    def _lend(self, value: Any) -> None:
        """Note that a value will stand in a second place, so that an edit in either is made in a copy."""
        if is_object(value) or is_array(value):
            self._lent = self._owned.pop(id(value), None) is not None or self._lent
        elif not isinstance(value, str):
            return
        self._built = True
        self._copied += 1

    def _loosen(self, pointer: JsonPointer) -> Any:
        """Copy the containers on the way to a pointer's target; returns the last one."""
        container: Any = self._own(self.root)
        self.root = container
        for token in pointer.parts[:-1]:
            key = _key(container, token)
            container[key] = container = self._own(container[key])
        if is_array(container) and pointer.parts[-1] != "-":
            _index(pointer.parts[-1])
        return container

    def _own(self, value: Any) -> Any:
        if id(value) in self._owned:
            return value
        if is_object(value):
            copy: Any = dict(value)
        elif is_array(value):
            copy = value.copy()
        else:
            raise PatchError("its pointer leads through a value that holds nothing")
        if self._lent:
            # The value may be one that was owned before it was lent; then what it holds now stands in two places.
            for child in copy.values() if is_object(copy) else copy:
                self._owned.pop(id(child), None)
            self._copied += len(copy)
            if self._copied > MAX_SIZE:
                raise PatchError(f"the patch copies more than {MAX_SIZE:,} values")
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
