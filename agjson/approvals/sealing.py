"""Values that a client keeps for the server and can neither read nor change (spec §3.1, §13.2).

Encrypted with AES-256-GCM, bound to a thread and an ask. Needs the extra ``approvals``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, cast

from agjson.approvals.book import LedgerStore
from agjson.approvals.canonical import canonical
from agjson.approvals.errors import BrokenSealError, SealedTooLargeError, SpentContinuationError, UnsealableError
from agjson.approvals.keys import Keys
from agjson.approvals.policy import now
from agjson.errors import DecodeError, EncodeError, MissingExtraError
from agjson.wire import encode
from agjson.wire._json import plain

__all__ = ["SealedContinuations", "Sealer"]

_FORM = re.compile(r"ags1\.([A-Za-z0-9_-]{1,64})\.([A-Za-z0-9_-]+)")
_NONCE = 12
_USE = "sealing"


class Sealer:
    """Encrypts values under rotating keys.

    Args:
        keys: the keys; what an old one has sealed can be read while it is among them.
        max_length: how many characters a sealed value may have.
        lasts: how long it can be read; None: as long as its key is there.
        clock: gives the present moment, with its offset from UTC.

    Raises:
        MissingExtraError: `cryptography` is not installed.
        ValueError: a limit under 1.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        max_length: int = 65_536,
        lasts: timedelta | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingExtraError("approvals", "cryptography") from None
        if max_length < 1:
            raise ValueError("max_length must be at least 1")
        self._keys = keys
        self._max = max_length
        self._lasts = lasts
        self._clock = clock
        self._cipher = AESGCM
        self._invalid: type[Exception] = InvalidTag

    def seal(self, value: Any, *, thread_id: str, ask_id: str) -> str:
        """Seal a value for one ask of one thread; each time another text.

        Args:
            value: plain data.
            thread_id: the thread.
            ask_id: the ask.

        Raises:
            UnsealableError: the value has no JSON form.
            SealedTooLargeError: it is too large.
        """
        expires = None if self._lasts is None else (self._clock() + self._lasts).isoformat()
        try:
            text = encode({"value": value, "expiresAt": expires})
        except EncodeError as error:
            raise UnsealableError(f"a continuation must be plain data: {error}") from None
        id = self._keys.current
        sealed = self._encrypted(text, id, _about(thread_id, ask_id))
        made = f"ags1.{id}.{base64.urlsafe_b64encode(sealed).rstrip(b'=').decode()}"
        if len(made) > self._max:
            raise SealedTooLargeError(len(made), self._max)
        return made

    def unseal(self, sealed: str, *, thread_id: str, ask_id: str) -> Any:
        """Read a sealed value.

        Args:
            sealed: what a client sent.
            thread_id: the thread that it was sent to.
            ask_id: the ask that it was sent for.

        Raises:
            BrokenSealError: it was not sealed here for this thread and this ask, or its time is over.
        """
        return self.open(sealed, thread_id=thread_id, ask_id=ask_id)[0]

    def open(self, sealed: str, *, thread_id: str, ask_id: str) -> tuple[Any, bytes]:
        """As `unseal`, with a digest that is the same however the text is written.

        Args:
            sealed: what a client sent.
            thread_id: the thread that it was sent to.
            ask_id: the ask that it was sent for.

        Raises:
            BrokenSealError: as `unseal`.
        """
        found = _FORM.fullmatch(sealed) if len(sealed) <= self._max else None
        if found is None:
            raise _broken()
        id, body = found.groups()
        try:
            data = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _broken() from None
        text = self._decrypted(data, id, _about(thread_id, ask_id))
        try:
            read: dict[str, Any] = plain(text, "$")
        except DecodeError:
            raise _broken() from None
        expires = cast("str | None", read["expiresAt"])
        if expires is not None and self._clock() >= datetime.fromisoformat(expires):
            raise BrokenSealError("the sealed value has expired", "$.requestState")
        return read["value"], hashlib.sha256(data).digest()

    # For what is kept at rest

    def seal_at_rest(self, data: bytes, *, about: bytes) -> bytes:
        """Encrypt bytes that a store keeps; the name of the key stands before them.

        Args:
            data: the bytes.
            about: what they are about; the same is needed to read them.
        """
        id = self._keys.current
        return id.encode() + b"." + self._encrypted(data, id, about)

    def unseal_at_rest(self, sealed: bytes, *, about: bytes) -> bytes:
        """Read what `seal_at_rest` has written.

        Args:
            sealed: the bytes.
            about: what they are about.

        Raises:
            BrokenSealError: they were changed, are about something else, or their key is in use no more.
        """
        id, _, data = sealed.partition(b".")
        return self._decrypted(data, id.decode("ascii", "replace"), about)

    def _encrypted(self, data: bytes, id: str, about: bytes) -> bytes:
        nonce = secrets.token_bytes(_NONCE)
        return nonce + self._cipher(self._keys.derived(id, _USE)).encrypt(nonce, data, about)

    def _decrypted(self, data: bytes, id: str, about: bytes) -> bytes:
        try:
            key = self._keys.derived(id, _USE)
            return self._cipher(key).decrypt(data[:_NONCE], data[_NONCE:], about)
        except (KeyError, ValueError, self._invalid):
            raise _broken() from None


class SealedContinuations:
    """Continuations that the client keeps as the `requestState` of an ask.

    They cannot be a `Continuations`: their name is made of their value.

    Args:
        sealer: seals them.
        store: notes which ones were used. None: nobody does, so a host without any store cannot keep a client from
            using one twice until it expires; the ledger still lets an ask be claimed once only.
    """

    def __init__(self, sealer: Sealer, store: LedgerStore | None = None) -> None:
        self._sealer = sealer
        self._store = store

    def seal(self, value: Any, *, thread_id: str, ask_id: str) -> str:
        """The `requestState` of an ask; raises as `Sealer.seal`.

        Args:
            value: plain data.
            thread_id: the thread.
            ask_id: the ask.
        """
        return self._sealer.seal(value, thread_id=thread_id, ask_id=ask_id)

    async def take(self, request_state: str, *, thread_id: str, ask_id: str) -> Any:
        """Read a continuation, and use it up.

        Args:
            request_state: what the answer echoes.
            thread_id: the thread that it was sent to.
            ask_id: the ask that it was sent for.

        Raises:
            BrokenSealError: it was not sealed here for this thread and this ask, or its time is over.
            SpentContinuationError: it was used before.
        """
        value, digest = self._sealer.open(request_state, thread_id=thread_id, ask_id=ask_id)
        if self._store is not None and not await self._store.transact(lambda book: book.spend(thread_id, digest)):
            raise SpentContinuationError("the continuation was used before", "$.requestState")
        return value


def _about(thread_id: str, ask_id: str) -> bytes:
    return canonical(["continuation", thread_id, ask_id])


def _broken() -> BrokenSealError:
    return BrokenSealError("the sealed value is not one of this server for this ask", "$.requestState")
