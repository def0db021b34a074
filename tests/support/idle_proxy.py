"""A proxy on this machine that cuts connections on which nothing comes for a while, as those before servers do."""

from __future__ import annotations

import contextlib
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
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(30)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(client,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server:
            upwards = threading.Thread(target=_pump, args=(client, server))
            upwards.start()
            server.settimeout(self._patience)
            try:
                _pump(server, client)
            except TimeoutError:
                self.cut += 1
            _end(client, server)
            upwards.join(30)


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Hand on what comes, until an end is gone.

    Raises:
        TimeoutError: nothing came for too long.
    """
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except TimeoutError:
        raise
    except OSError:
        pass
    _end(source, target)


def _end(*sockets: socket.socket) -> None:
    for each in sockets:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
