"""What ``import agjson`` adds to the start of a program, against ``import msgspec``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Effort, Row

_PROGRAM = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"


def rows(effort: Effort) -> Iterator[Row]:
    times = {"agjson": float("inf"), "msgspec": float("inf")}
    for _ in range(min(effort.rounds + 1, 15)):  # the first one may have to compile
        for name in times:
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM.format(name)], check=True, capture_output=True, text=True
            )
            times[name] = min(times[name], float(done.stdout))
    yield Row(
        "start",
        "import agjson",
        times["agjson"] / times["msgspec"],
        4.0,
        f"{times['agjson'] * 1e3:.1f} ms",
        f"import msgspec ({times['msgspec'] * 1e3:.1f} ms)",
    )
