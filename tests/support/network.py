"""Stand between a process and PostgreSQL, to do to their connections what a network does."""

import random
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Condition, Thread
from typing import ParamSpec
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from sweephand.postgres.connect import conninfo

P = ParamSpec("P")

_CHUNK_BYTES = 65_536


@dataclass(eq=False, slots=True)
class _Link:
    """Be one client's connection and the one to the server that was opened for it."""

    client: socket.socket
    server: socket.socket
    is_cut: bool = field(default=False)

    def cut(self) -> None:
        self.is_cut = True
        for end in (self.client, self.server):
            # Shut down first: closing alone does not wake a thread that waits in recv.
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class DatabaseGate:
    """Be a TCP address through which a database is reached, open at first: `url` leads there.

    `freeze` is a network that swallows everything and says nothing, `hold_answers` one that swallows what the server says, `cut`
    ends what connections there are, `refuse` lets no new one in. `open` ends all of it; what was held is then delivered, as TCP
    does. From any thread.
    """

    def __init__(self, database_url: str) -> None:
        """Listen on a free port of the loopback address."""
        parts = conninfo_to_dict(conninfo(database_url, application_name="gate"))
        self._host, self._port = str(parts.get("host", "localhost")), int(str(parts.get("port", 5432)))
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        user, password = (quote(str(parts.get(name) or ""), safe="") for name in ("user", "password"))
        self.url = f"postgresql://{user}{':' if password else ''}{password}@127.0.0.1:{port}/{parts['dbname']}"
        self._changed = Condition()
        self._may_ask = True
        self._may_answer = True
        self._may_enter = True
        self._links: set[_Link] = set()
        self._threads: list[Thread] = []
        self._start(self._accept)

    @property
    def connections(self) -> int:
        """How many connections go through it now."""
        with self._changed:
            return len(self._links)

    def freeze(self) -> None:
        """Deliver nothing in either direction until `open`; connections stay, and new ones are taken and get no answer."""
        self._set(may_ask=False, may_answer=False, may_enter=True)

    def hold_answers(self) -> None:
        """Deliver to the server and nothing back until `open`: with `cut`, the loss of the answer to a COMMIT."""
        self._set(may_ask=True, may_answer=False, may_enter=True)

    def refuse(self) -> None:
        """Cut every connection and close each new one at once, until `open`."""
        self._set(may_ask=True, may_answer=True, may_enter=False)
        self.cut()

    def open(self) -> None:
        """Let everything through again."""
        self._set(may_ask=True, may_answer=True, may_enter=True)

    def cut(self) -> None:
        """End all connections; what was held is lost."""
        with self._changed:
            for link in self._links:
                link.cut()
            self._links.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """End everything; the URL leads nowhere from now on."""
        self.refuse()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=5)

    def _set(self, *, may_ask: bool, may_answer: bool, may_enter: bool) -> None:
        with self._changed:
            self._may_ask, self._may_answer, self._may_enter = may_ask, may_answer, may_enter
            self._changed.notify_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._changed:
                may_enter = self._may_enter
            try:
                server = self._connect() if may_enter else None
            except OSError:
                server = None
            if server is None:
                client.close()
                continue
            link = _Link(client, server)
            with self._changed:
                # Closed while the server was asked.
                if not self._may_enter:
                    link.cut()
                    continue
                self._links.add(link)
            self._start(self._pump, link, source=client, target=server)
            self._start(self._pump, link, source=server, target=client)

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port), timeout=None)
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(Path(self._host, f".s.PGSQL.{self._port}")))
        return server

    def _pump(self, link: _Link, *, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(_CHUNK_BYTES):
                with self._changed:
                    self._changed.wait_for(lambda: link.is_cut or (self._may_ask if source is link.client else self._may_answer))
                target.sendall(chunk)
        with self._changed:
            link.cut()
            self._links.discard(link)

    def _start(self, run: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        thread = Thread(target=run, args=args, kwargs=kwargs, name="database-gate", daemon=True)
        self._threads.append(thread)
        thread.start()


def free_port() -> int:
    """Return a port for a program that must be told one, below those that the kernel gives to whoever asks for any."""
    for port in random.sample(range(20_000, 30_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")
