"""Whether the process that a run belongs to is still there."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

__all__ = ["has_ended", "this_process"]


def this_process() -> str:
    """A name of the calling process that no other one of this machine ever has; empty where the system cannot tell.

    It is made of the boot, the namespace that process ids count in, the process id, and when the process began.
    """
    return _named(os.getpid())


# A child of a fork has another process id, and so a name of its own.
@lru_cache(maxsize=1)
def _named(pid: int) -> str:
    begun = _begun(pid)
    where = _where()
    return f"{where}/{pid}/{begun}" if where and begun else ""


def has_ended(process: str) -> bool:
    """Whether a process has surely ended.

    Args:
        process: what `this_process` was there.

    Returns:
        False where this process cannot know: it runs in another container, or on another system.
    """
    parts = process.split("/")
    where = _where().split("/")
    if len(parts) != 4 or len(where) != 2:
        return False
    boot, namespace, pid, begun = parts
    if boot != where[0]:
        return True
    if namespace != where[1]:
        return False
    now = _begun(int(pid))
    return now != begun if now else not _exists(int(pid))


@lru_cache(maxsize=1)
def _where() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _begun(pid: int) -> str:
    """When a process began, in ticks since the boot; ``ended``: nobody waits for what is left of it; empty: unknown."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # The name of the program, in parentheses, may hold anything.
    fields = text.rpartition(")")[2].split()
    return "ended" if fields[0] in ("Z", "X") else fields[19]


def _exists(pid: int) -> bool:
    """Whether there is a process of an id, also one of another user whom the system does not show."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
