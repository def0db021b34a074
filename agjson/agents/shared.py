"""Stores that outlive a process and serve several: what readers, servers and other workers ask of them (spec §3)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from agjson.agents.store import ThreadStore

__all__ = ["LoggedTurn", "SharedThreadStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTurn:
    """The latest turn of a thread, as its log has it.

    Attributes:
        turn_id: the turn.
        last_seq: the ordinal of the last event in the log; -1: none yet.
        ended: the thread is saved, and the log is whole; false while somebody runs it.
        owner: who the thread belongs to, as `ThreadLease.begin` was told while the turn runs, and as it is stored
            after it; None: nobody in particular. So a first turn has an owner before its thread is saved.
    """

    turn_id: str
    last_seq: int
    ended: bool
    owner: str | None = None


class SharedThreadStore(ThreadStore):
    """A store that keeps threads beyond a process, and that several processes may use at once.

    It logs: the events of the latest turn of each thread can be read while it runs, by any process, and until the next
    turn of the thread begins. What a run had logged when its process died is not lost: the thread is recovered by
    whoever loads, acquires or reads it first once the store can tell, at the latest when the dead run's right has
    lapsed (`recover`). The events that close the turn are logged like the others.
    """

    suspends: ClassVar[bool] = True

    @abstractmethod
    async def latest_turn(self, thread_id: str) -> LoggedTurn | None:
        """The turn that runs, or else the one that ran last; None: the thread has had none, or does not exist.

        Args:
            thread_id: which thread.
        """

    @abstractmethod
    async def read_log(self, thread_id: str, turn_id: str, *, after: int = -1, limit: int = 1000) -> Sequence[bytes]:
        """Events of the latest turn of a thread, encoded as JSON without a line end, in order.

        Args:
            thread_id: which thread.
            turn_id: its latest turn.
            after: only those whose ``seq`` is greater.
            limit: how many at most.

        Raises:
            LookupError: it is not the thread's latest turn any more, or never was: the reader must resync.
        """

    @abstractmethod
    async def request_stop(self, thread_id: str, turn_id: str) -> bool:
        """Ask whoever runs a turn, in whatever process, to stop it.

        Args:
            thread_id: which thread.
            turn_id: the turn.

        Returns:
            Whether the turn was running. It goes on until its process has seen the request.
        """

    @abstractmethod
    async def stop_requests(self) -> Sequence[tuple[str, str]]:
        """The runs of this store object that somebody has asked to stop, as pairs of thread and turn. Asked often."""

    @abstractmethod
    async def aclose(self) -> None:
        """Give back what the store holds. Leases that are still out are lost runs. A second call does nothing."""
