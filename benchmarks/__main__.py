"""Run the benchmarks, print the table, and write it into docs/performance.md."""

from __future__ import annotations

import argparse
import sys

from benchmarks import (
    bench_anthropic,
    bench_approvals,
    bench_emitter,
    bench_fold,
    bench_http,
    bench_import,
    bench_langgraph,
    bench_memory,
    bench_sse,
    bench_stores,
    bench_transcript,
    bench_wire,
    page,
)
from benchmarks.measure import FULL, QUICK, Row

BENCHES = {
    "wire": bench_wire.rows,
    "fold": bench_fold.rows,
    "emitter": bench_emitter.rows,
    "anthropic": bench_anthropic.rows,
    "langgraph": bench_langgraph.rows,
    "start": bench_import.rows,
    "streams": bench_sse.rows,
    "stores": bench_stores.rows,
    "transcript": bench_transcript.rows,
    "approvals": bench_approvals.rows,
    "http": bench_http.rows,
    "memory": bench_memory.rows,
}


def main(arguments: list[str] | None = None) -> int:
    """Measure; 0 where every row meets its aim, 1 where one does not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("bench", nargs="*", help=f"only these of {', '.join(BENCHES)}; the page is not written then")
    parser.add_argument("--quick", action="store_true", help="measure less; the page is not written then")
    options = parser.parse_args(arguments)
    for name in options.bench:
        if name not in BENCHES:
            parser.error(f"no benchmark {name}: there are {', '.join(BENCHES)}")
    rows: list[Row] = []
    for name in options.bench or BENCHES:
        for row in BENCHES[name](QUICK if options.quick else FULL):
            print(page.line(row), flush=True)
            rows.append(row)
    if not options.bench and not options.quick:
        page.write(rows)
    over = [row.name for row in rows if row.verdict == "over"]
    if over:
        print(f"over the aim: {'; '.join(over)}", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
