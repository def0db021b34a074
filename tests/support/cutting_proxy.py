"""A proxy on this machine that cuts answers off at a byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable
from types import TracebackType


class CuttingProxy:
    """Hands connections on, and cuts the first ones when so many bytes of the answer have passed.

    Args:
        port: where the server listens, on this machine.
        cuts: bytes for one connection after the other; None: not cut. Later connections are not cut.
    """

    def __init__(self, port: int, cuts: Iterable[int | None] = ()) -> None:
        self._target = ("127.0.0.1", port)
        self.cuts = list(cuts)

    def __enter__(self) -> CuttingProxy:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            cut = self.cuts.pop(0) if self.cuts else None
            server = socket.create_connection(self._target)
            threading.Thread(target=_pump, args=(client, server, None), daemon=True).start()
            threading.Thread(target=_pump, args=(server, client, cut), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket, limit: int | None) -> None:
    left = limit
    try:
        while left is None or left > 0:
            data = source.recv(65536)
            if not data:
                break
            target.sendall(data if left is None else data[:left])
            left = None if left is None else left - len(data)
        # The server must have taken the request before the client hears that the connection is gone.
        if limit == 0:
            source.recv(1)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            end.close()
        end.close()
