"""A proxy on this machine that cuts connections on which nothing comes for a while, as those before servers do."""

from __future__ import annotations

import socket
import threading
from types import TracebackType

__all__ = ["IdleProxy"]


class IdleProxy:
    """Hands connections on, and cuts each when the server is silent for too long.

    Args:
        port: where the server listens, on this machine.
        patience: after how many silent seconds.

    Attributes:
        url: where it listens.
        cut: how many connections it has cut.
    """

    def __init__(self, port: int, patience: float) -> None:
        self._target = ("127.0.0.1", port)
        self._patience = patience
        self.cut = 0

    def __enter__(self) -> IdleProxy:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            threading.Thread(target=self._upwards, args=(client, server), daemon=True).start()
            threading.Thread(target=self._downwards, args=(server, client), daemon=True).start()

    def _upwards(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(65536):
                server.sendall(data)
        except OSError:
            pass
        _end(client, server)

    def _downwards(self, server: socket.socket, client: socket.socket) -> None:
        server.settimeout(self._patience)
        try:
            while data := server.recv(65536):
                client.sendall(data)
        except TimeoutError:
            self.cut += 1
        except OSError:
            pass
        _end(client, server)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            each.close()
