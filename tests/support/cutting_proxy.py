"""A proxy on this machine that cuts answers off at a byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable

from tests.support.listener import Listener


class CuttingProxy(Listener):
    """Hands connections on, and cuts the first ones when so many bytes of the answer have passed.

    Args:
        port: where the server listens, on this machine.
        cuts: bytes for one connection after the other; None: not cut. Later connections are not cut.
    """

    def __init__(self, port: int, cuts: Iterable[int | None] = ()) -> None:
        self._target = ("127.0.0.1", port)
        self.cuts = list(cuts)
        self._lock = threading.Lock()

    def _serve(self, connection: socket.socket) -> None:
        with self._lock:
            cut = self.cuts.pop(0) if self.cuts else None
        server = socket.create_connection(self._target)
        threading.Thread(target=_pump, args=(connection, server, None), daemon=True).start()
        _pump(server, connection, cut)


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
