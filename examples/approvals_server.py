"""An agent that asks before it runs its tool, and waits for the answer over any restart; `make chat` talks to it.

    .venv/bin/python -m examples.approvals_server

`make serve`, done once, makes the .venv. Ask it something, stop the server while it waits, start it again, and answer:
the run goes on, and the tool runs once.
As in anthropic_server.py, the provider is asked only where ANTHROPIC_API_KEY is set; else its answers are recorded, and
whatever is asked, it wants to know the rate of the dollar.
"""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

import uvicorn
from anthropic import AsyncAnthropic, beta_async_tool

from agjson.adapters.anthropic import AnthropicAgent
from agjson.approvals import Keys, Ledger, Policy
from agjson.middleware.asgi import AgentApp
from agjson.stores import SQLiteThreadStore
from agjson.stores.ledger import SQLiteLedgerStore
from examples.anthropic_server import RECORDING, SECONDS_PER_EVENT, recorded_client


@beta_async_tool
async def get_rate(pair: str) -> str:
    """Get the exchange rate of a pair of currencies, such as USD/EUR."""
    print(f"get_rate runs: {pair}", flush=True)
    return {"USD/EUR": "0.92", "EUR/USD": "1.09"}.get(pair, "unknown")


def make_app(store: str, seconds_per_event: float = SECONDS_PER_EVENT) -> AgentApp:
    """The agent. Threads and asks are in the file `store`, and the key of the tokens beside it.

    The next server on the file needs the same key: answers to what this one has asked are checked by it.
    """
    client = AsyncAnthropic() if os.environ.get("ANTHROPIC_API_KEY") else recorded_client(RECORDING, seconds_per_event)
    threads = SQLiteThreadStore(store)
    keys = Keys({"1": kept_key(Path(f"{store}.key"))})
    return AgentApp(
        AnthropicAgent(client, model="claude-sonnet-5-5", tools=[get_rate], gated=["get_rate"]),
        store=threads,
        approvals=Ledger(SQLiteLedgerStore(threads), Policy(keys=keys)),
    )


def kept_key(path: Path) -> bytes:
    """The secret in a file that its owner alone may read, made where there is none. A service has a vault for this."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_bytes()
    with os.fdopen(file, "wb") as new:
        new.write(secrets.token_bytes(32))
    return path.read_bytes()


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--port", default=8000, type=int, help="the port (default: %(default)s)")
    parser.add_argument(
        "--store", metavar="FILE", default="approvals.db", help="keep threads and asks in this file (%(default)s)"
    )
    arguments = parser.parse_args()
    uvicorn.run(make_app(arguments.store), host=arguments.host, port=arguments.port)


if __name__ == "__main__":
    main()
