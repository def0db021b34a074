"""The secrets that tokens and sealed values are made with, and how they rotate (spec §13.1)."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

from agjson._arguments import check_kind

__all__ = ["Keys"]

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHORTEST = 32


class Keys:
    """Named secrets: one makes what is new, all of them check what is old.

    To rotate, add a key and make it the current one; take the old one out when nothing that it has made is to count any
    more. Every use has a key of its own, derived from the secret. Secrets show in no `repr`.

    Args:
        secrets: each key's secret by its name, at least 32 bytes each; a name has letters, digits, ``-`` and ``_``.
        current: the name of the key that makes new tokens; None: the last one of `secrets`.

    Raises:
        TypeError: no mapping, or a secret that is no bytes.
        ValueError: no key, a short secret, a name that cannot be one, or a current key that is none of them.
    """

    def __init__(self, secrets: Mapping[str, bytes], current: str | None = None) -> None:
        check_kind("secrets", secrets, Mapping, hint='Keys({"2026-01": secret})')
        if not secrets:
            raise ValueError("at least one key is needed")
        for id, secret in secrets.items():
            if not _ID.fullmatch(id):
                raise ValueError(f"no name of a key: {id!r}")
            check_kind(f"the secret of key {id!r}", secret, bytes)
            if len(secret) < _SHORTEST:
                raise ValueError(f"the secret of key {id!r} is shorter than {_SHORTEST} bytes")
        self._secrets = dict(secrets)
        self._current = current if current is not None else list(secrets)[-1]
        if self._current not in self._secrets:
            raise ValueError(f"the current key {self._current!r} is none of {', '.join(self._secrets)}")
        self._derived: dict[tuple[str, str], bytes] = {}

    @classmethod
    def random(cls) -> Keys:
        """A key of this moment alone: what it makes is worth nothing to any other process, or after a restart."""
        return cls({"random": secrets.token_bytes(_SHORTEST)})

    @property
    def current(self) -> str:
        """The name of the key that makes what is new."""
        return self._current

    def __contains__(self, id: object) -> bool:
        """Whether there is a key of this name."""
        return id in self._secrets

    def derived(self, id: str, use: str) -> bytes:
        """The 32 bytes of a key for one use.

        Args:
            id: the name of the key.
            use: what for.

        Raises:
            KeyError: there is no such key.
        """
        known = self._derived.get((id, use))
        if known is None:
            known = hmac.digest(self._secrets[id], f"agjson {use} v1".encode(), hashlib.sha256)
            self._derived[id, use] = known
        return known

    def __repr__(self) -> str:
        """The names alone."""
        return f"Keys({', '.join(self._secrets)}; current {self._current})"
