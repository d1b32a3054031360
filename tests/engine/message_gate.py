"""Stand between a process and PostgreSQL, and hold the very message, or the very answer, that a test names.

`tests.support.network` is a network that fails at any time; this one fails at a chosen statement.
"""

import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

from sweephand.postgres.connect import conninfo

_CHUNK_BYTES = 65_536
_STATEMENT_TYPES = (b"Q", b"E")  # Query, and Execute of the extended protocol


@dataclass(frozen=True, slots=True)
class Hold:
    """Be the place where one message, or its answer, is held: `reached` is set there, `release` lets it go on."""

    text: bytes
    application: bytes
    is_answer: bool
    reached: Event = field(default_factory=Event)
    released: Event = field(default_factory=Event)

    def wait(self, *, deadline_seconds: float = 30) -> None:
        """Wait until the message has come."""
        assert self.reached.wait(deadline_seconds), f"{self.text!r} has not come"

    def release(self) -> None:
        """Let it go on."""
        self.released.set()


class MessageGate:
    """Be a TCP address through which a database is reached; `hold` arms it once. From any thread."""

    def __init__(self, database_url: str) -> None:
        """Listen on a free port of the loopback address."""
        parts = conninfo_to_dict(conninfo(database_url, application_name="gate"))
        self._host, self._port = str(parts.get("host", "localhost")), int(str(parts.get("port", 5432)))
        self._listener = socket.create_server(("127.0.0.1", 0))
        user, password = (quote(str(parts.get(name) or ""), safe="") for name in ("user", "password"))
        port = self._listener.getsockname()[1]
        plain = "sslmode=disable&gssencmode=disable"  # so that the messages can be read
        self.url = f"postgresql://{user}{':' if password else ''}{password}@127.0.0.1:{port}/{parts['dbname']}?{plain}"
        self._lock = Lock()
        self._armed: Hold | None = None
        self._holds: list[Hold] = []
        self._statements: list[bytes] = []
        self._sockets: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._start(self._accept)

    def hold(self, text: str, *, application: str, is_answer: bool = False) -> Hold:
        """Hold the next message to the server that contains the text, or else the server's answer to it.

        Only connections whose application_name contains `application` are looked at.
        """
        hold = Hold(text.encode(), application.encode(), is_answer)
        with self._lock:
            self._armed = hold
            self._holds.append(hold)
        return hold

    def statements(self) -> int:
        """Return how many statements have gone through since the last call."""
        with self._lock:
            statements, self._statements = self._statements, []
        return len(statements)

    def cut(self) -> None:
        """End every connection on both sides; what is held is lost."""
        with self._lock:
            sockets, self._sockets = self._sockets, []
        for one in sockets:
            _shut(one)

    def close(self) -> None:
        """End everything."""
        _shut(self._listener)
        self.cut()
        for hold in self._holds:
            hold.release()
        for thread in self._threads:
            thread.join(timeout=5)

    def _accept(self) -> None:
        with suppress(OSError), self._listener:
            while True:
                client, _ = self._listener.accept()
                server = self._connect()
                with self._lock:
                    self._sockets += [client, server]
                link = _Link(self, client=client, server=server)
                self._start(link.ask)
                self._start(link.answer)

    def _connect(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(Path(self._host, f".s.PGSQL.{self._port}")))
        return server

    def _start(self, run: Callable[[], None]) -> None:
        thread = Thread(target=run, name="message-gate", daemon=True)
        self._threads.append(thread)
        thread.start()

    def take(self, message: bytes, *, startup: bytes) -> Hold | None:
        """Return what is armed if this message is the one; it is then armed no more."""
        with self._lock:
            if message[:1] in _STATEMENT_TYPES:
                self._statements.append(message)
            if self._armed is None or self._armed.text not in message or self._armed.application not in startup:
                return None
            hold, self._armed = self._armed, None
            return hold


class _Link:
    """Be one client's connection and the one to the server that was opened for it."""

    def __init__(self, gate: MessageGate, *, client: socket.socket, server: socket.socket) -> None:
        self._gate = gate
        self._client = client
        self._server = server
        self._held_answer: Hold | None = None

    def ask(self) -> None:
        """Deliver the client's messages one by one."""
        with suppress(OSError, struct.error), self._client:
            startup = self._read_sized(b"")  # it has no type, and names the application
            self._server.sendall(startup)
            while True:
                message = self._read_sized(self._read(1))
                hold = self._gate.take(message, startup=startup)
                if hold is not None and hold.is_answer:
                    self._held_answer = hold
                elif hold is not None:
                    hold.reached.set()
                    hold.released.wait()
                self._server.sendall(message)
        _shut(self._server)

    def answer(self) -> None:
        """Deliver what the server says."""
        with suppress(OSError), self._server:
            while chunk := self._server.recv(_CHUNK_BYTES):
                if self._held_answer is not None:
                    self._held_answer.reached.set()
                    self._held_answer.released.wait()
                self._client.sendall(chunk)
        _shut(self._client)

    def _read_sized(self, kind: bytes) -> bytes:
        size = self._read(4)
        return kind + size + self._read(struct.unpack("!i", size)[0] - 4)

    def _read(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            chunk = self._client.recv(count - len(found))
            if not chunk:
                raise OSError("the client is gone")
            found += chunk
        return found


def _shut(one: socket.socket) -> None:
    # Closing alone would not wake a thread that waits in recv or accept; that thread closes it.
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
