"""Where the ledger keeps what it knows: what a store has to do, and the store in memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from agjson.approvals.errors import LedgerError
from agjson.approvals.records import AskRecord, BatchRecord, StandingRule
from agjson.approvals.states import check_transition

if TYPE_CHECKING:
    from agjson.agents.store import ThreadLease
    from agjson.agents.thread import Thread

__all__ = ["Book", "LedgerStore", "MemoryLedgerStore"]

K = TypeVar("K", str, bytes)
T = TypeVar("T")


class Book(ABC):
    """The records, inside a transaction: what is written is kept if the transaction ends well, or else none of it.

    Records are replaced, never changed. `change_ask` is the only way to another state, and refuses those that there are
    not.
    """

    @abstractmethod
    def ask(self, thread_id: str, ask_id: str) -> AskRecord | None:
        """An ask; None: there is none.

        Args:
            thread_id: the thread.
            ask_id: the ask.
        """

    @abstractmethod
    def asks(self, thread_id: str, turn_id: str | None = None) -> list[AskRecord]:
        """The asks of a thread, in the order of their batches and places.

        Args:
            thread_id: the thread.
            turn_id: only those of this batch.
        """

    @abstractmethod
    def ask_of_token(self, token_hash: bytes) -> AskRecord | None:
        """The ask of any thread that a token was issued for; None: there is none.

        Args:
            token_hash: SHA-256 of the token.
        """

    @abstractmethod
    def batch(self, thread_id: str, turn_id: str) -> BatchRecord | None:
        """A batch; None: there is none.

        Args:
            thread_id: the thread.
            turn_id: the turn that names it.
        """

    @abstractmethod
    def batches(self, thread_id: str | None = None) -> list[BatchRecord]:
        """The batches that are open or claimed, in order.

        Args:
            thread_id: only those of this thread.
        """

    @abstractmethod
    def put_batch(self, batch: BatchRecord) -> None:
        """Keep a batch, in the place of the one of its name.

        Args:
            batch: the batch.
        """

    @abstractmethod
    def add_ask(self, record: AskRecord) -> None:
        """Keep a new ask.

        Args:
            record: the ask, of a batch that is kept.
        """

    def change_ask(self, before: AskRecord, after: AskRecord) -> None:
        """Replace an ask by itself in another state.

        Args:
            before: the ask as it was read in this transaction.
            after: the same ask.

        Raises:
            TransitionError: it cannot go from the one state to the other.
        """
        check_transition(before.ask_id, before.state, after.state)
        self._write_ask(before, after)

    @abstractmethod
    def _write_ask(self, before: AskRecord, after: AskRecord) -> None:
        """Replace an ask whose new state is allowed.

        Raises:
            LedgerError: what is kept is not in the state of `before`.
        """

    @abstractmethod
    def rules(self, owner: str | None) -> list[StandingRule]:
        """The standing rules of an owner, in the order in which they were made.

        Args:
            owner: whose.
        """

    @abstractmethod
    def add_rule(self, rule: StandingRule) -> None:
        """Keep a standing rule.

        Args:
            rule: the rule.
        """

    @abstractmethod
    def drop_rule(self, rule_id: str) -> None:
        """Remove a standing rule; one that is not there is no error.

        Args:
            rule_id: which one.
        """

    @abstractmethod
    def spend(self, thread_id: str, digest: bytes) -> bool:
        """Note that something is used up.

        Args:
            thread_id: the thread that it is of.
            digest: names it.

        Returns:
            False where it was noted before.
        """


class LedgerStore(ABC):
    """Keeps the ledger. One store may serve any number of ledgers, threads of execution and event loops.

    Class attributes:
        suspends: as for `ThreadStore`.
    """

    suspends: ClassVar[bool] = True

    @abstractmethod
    async def transact(self, work: Callable[[Book], T]) -> T:
        """Run something on the records, alone among all who do so, and keep what it has written.

        Args:
            work: what to do. It may be called again where the transaction fails, so it must have no other effect.

        Raises:
            Exception: whatever `work` raises; nothing that it has written is kept then.
        """

    async def read(self, work: Callable[[Book], T]) -> T:
        """Look at the records as they are at one moment. The default is a transaction.

        Args:
            work: what to do; it must not write.

        Raises:
            Exception: whatever `work` raises.
        """
        return await self.transact(work)

    async def begin(self, lease: ThreadLease, turn_id: str, thread: Thread, work: Callable[[Book], T]) -> T:
        """Run something on the records, and begin a turn because of it: both, or none, where the store can see to it.

        The default begins the turn after the transaction. Where it cannot begin, what was claimed stays claimed: nobody
        can tell then whether it was acted on, so whoever runs the thread next finds it lost.

        Args:
            lease: the right to run the thread.
            turn_id: as for `ThreadLease.begin`.
            thread: as for `ThreadLease.begin`.
            work: as for `transact`.

        Returns:
            What `work` returns.
        """
        done = await self.transact(work)
        await lease.begin(turn_id, thread)
        return done

    def holder(self) -> str:
        """A name of the calling process, by which `has_ended` knows it; empty: the system cannot tell."""
        return ""

    def has_ended(self, holder: str) -> bool:
        """Whether a process has surely ended.

        Args:
            holder: its name.
        """
        return False


class MemoryLedgerStore(LedgerStore):
    """Keeps the ledger in this process; what it was claimed for ends with it."""

    suspends = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._book = _MemoryBook()

    async def transact(self, work: Callable[[Book], T]) -> T:
        """Run something on the records; the arguments are those of `LedgerStore.transact`."""
        with self._lock:
            self._book.undo.clear()
            try:
                return work(self._book)
            except BaseException:
                for undo in reversed(self._book.undo):
                    undo()
                raise


class _MemoryBook(Book):
    def __init__(self) -> None:
        # By thread: batches by turn, asks by id, in the order in which they came.
        self._batches: dict[str, dict[str, BatchRecord]] = {}
        self._asks: dict[str, dict[str, AskRecord]] = {}
        self._places: dict[tuple[str, str], list[str]] = {}
        self._tokens: dict[bytes, tuple[str, str]] = {}
        self._rules: dict[str, StandingRule] = {}
        self._spent: set[tuple[str, bytes]] = set()
        self.undo: list[Callable[[], object]] = []

    def ask(self, thread_id: str, ask_id: str) -> AskRecord | None:
        return self._asks.get(thread_id, {}).get(ask_id)

    def asks(self, thread_id: str, turn_id: str | None = None) -> list[AskRecord]:
        turns = self._batches.get(thread_id, {}) if turn_id is None else [turn_id]
        kept = self._asks.get(thread_id, {})
        return [kept[ask_id] for turn in turns for ask_id in self._places.get((thread_id, turn), ())]

    def ask_of_token(self, token_hash: bytes) -> AskRecord | None:
        key = self._tokens.get(token_hash)
        return None if key is None else self.ask(*key)

    def batch(self, thread_id: str, turn_id: str) -> BatchRecord | None:
        return self._batches.get(thread_id, {}).get(turn_id)

    def batches(self, thread_id: str | None = None) -> list[BatchRecord]:
        of_threads = self._batches.values() if thread_id is None else [self._batches.get(thread_id, {})]
        return [batch for each in of_threads for batch in each.values() if batch.state in ("open", "claimed")]

    def put_batch(self, batch: BatchRecord) -> None:
        self._set(self._batches.setdefault(batch.thread_id, {}), batch.turn_id, batch)

    def add_ask(self, record: AskRecord) -> None:
        self._set(self._asks.setdefault(record.thread_id, {}), record.ask_id, record)
        places = self._places.setdefault((record.thread_id, record.turn_id), [])
        places.append(record.ask_id)
        self.undo.append(places.pop)
        if record.token_hash is not None:
            self._set(self._tokens, record.token_hash, (record.thread_id, record.ask_id))

    def _write_ask(self, before: AskRecord, after: AskRecord) -> None:
        kept = self._asks[before.thread_id]
        if kept[before.ask_id].state != before.state:
            raise LedgerError(f"ask {before.ask_id!r} was changed meanwhile")
        self._set(kept, before.ask_id, after)

    def rules(self, owner: str | None) -> list[StandingRule]:
        return [rule for rule in self._rules.values() if rule.owner == owner]

    def add_rule(self, rule: StandingRule) -> None:
        self._set(self._rules, rule.rule_id, rule)

    def drop_rule(self, rule_id: str) -> None:
        rule = self._rules.pop(rule_id, None)
        if rule is not None:
            self.undo.append(lambda: self._rules.__setitem__(rule_id, rule))

    def spend(self, thread_id: str, digest: bytes) -> bool:
        key = (thread_id, digest)
        if key in self._spent:
            return False
        self._spent.add(key)
        self.undo.append(lambda: self._spent.discard(key))
        return True

    def _set(self, into: dict[K, T], key: K, value: T) -> None:
        if key in into:
            before = into[key]
            self.undo.append(lambda: into.__setitem__(key, before))
        else:
            self.undo.append(lambda: into.pop(key, None))
        into[key] = value
