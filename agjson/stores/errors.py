"""Why a store on disk cannot do what it is asked; each names its file, and none a stored value (spec §13.2)."""

from __future__ import annotations

from agjson.errors import AgJSONError

__all__ = [
    "DamagedStoreError",
    "LeaseLostError",
    "NewerSchemaError",
    "StoreClosedError",
    "StoreError",
    "StoreFileError",
    "StoreFullError",
    "StoreLockedError",
]


class StoreError(AgJSONError):
    """A store failed. What was asked has had no effect."""


class StoreClosedError(StoreError):
    """The store was closed."""


class StoreFileError(StoreError):
    """There is no store at the path: a folder, no database, somebody else's, or one that may not be written."""


class NewerSchemaError(StoreFileError):
    """A later release has written the file.

    Attributes:
        found: the version of the file's schema.
        known: the latest version that this release reads.
    """

    def __init__(self, message: str, found: int, known: int) -> None:
        super().__init__(message)
        self.found = found
        self.known = known


class StoreLockedError(StoreError):
    """Somebody else was writing for longer than the store waits."""


class StoreFullError(StoreError):
    """No space is left, on the disk or within the limit of the database."""


class DamagedStoreError(StoreError):
    """What the file holds cannot be read."""


class LeaseLostError(StoreError):
    """The right to run a thread has lapsed: its process did not report in time, and the run has been ended for it."""
