"""Thread stores that outlive a process."""

from agjson.stores.errors import (
    DamagedStoreError,
    LeaseLostError,
    NewerSchemaError,
    StoreClosedError,
    StoreError,
    StoreFileError,
    StoreFullError,
    StoreLockedError,
)
from agjson.stores.lease import SQLiteThreadLease
from agjson.stores.sqlite import SQLiteThreadStore, StoredThread
from agjson.stores.thread_json import decode_thread, encode_thread

__all__ = [
    "DamagedStoreError",
    "LeaseLostError",
    "NewerSchemaError",
    "SQLiteThreadLease",
    "SQLiteThreadStore",
    "StoreClosedError",
    "StoreError",
    "StoreFileError",
    "StoreFullError",
    "StoreLockedError",
    "StoredThread",
    "decode_thread",
    "encode_thread",
]
