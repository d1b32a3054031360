"""An application's API, worker and dispatcher as real processes on this machine."""

import os
import random
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Event
from time import monotonic

from sweephand.dev.children import Child, Keeper, OnLine, start_child, start_keeper
from sweephand.model.errors import SweephandError
from sweephand.postgres.embedded import database_url_or_embedded

ROLES = ("api", "worker", "dispatcher")

_READY_SECONDS = 60.0
_POLL_SECONDS = 0.05
_KILL_SECONDS = 10.0
_READER_SECONDS = 5.0
# Below Kubernetes' node ports, and what the kernel gives to those who ask for any port: so that nobody is likely to take one
# between the look and the process's start.
_PORTS = range(20_000, 30_000)


@dataclass(frozen=True, slots=True)
class StackAddresses:
    """Where a started stack is to be found."""

    api_url: str
    """The application's HTTP interface."""
    endpoint_urls: Mapping[str, str]
    """By role, the server of /livez, /readyz and /metrics."""
    database_url: str
    """The database; a secret when DATABASE_URL named it."""
    is_embedded: bool
    """Whether the database is one of the stack's own, which ends with it."""


class LocalStack:
    """The processes of an application, started together, stopped together, none restarted.

    They end with this process, also when it is killed. One thread at a time may call `start` and `stop`.
    """

    def __init__(
        self,
        app_target: str,
        *,
        on_line: OnLine,
        database_url: str | None = None,
        api_port: int = 0,
        data_dir: Path | None = None,
        environment: Mapping[str, str] | None = None,
        roles: Sequence[str] = ROLES,
    ) -> None:
        """Describe a stack; nothing happens before `start`.

        Args:
            app_target: The application, as `module:attribute`.
            on_line: Called with a process's name and each line that it writes, from several threads.
            database_url: The database. None: the one that DATABASE_URL names, or an embedded PostgreSQL.
            api_port: 0 for any free port.
            data_dir: Where an embedded PostgreSQL keeps its data. None: nowhere.
            environment: Variables of the processes beside those of this one; they win.
            roles: Which processes to start.
        """
        self._app_target = app_target
        self._on_line = on_line
        self._database_url = database_url
        self._api_port = api_port
        self._data_dir = data_dir
        self._environment = dict(environment or {})
        self._roles = tuple(roles)
        self._resources = ExitStack()
        self._children: list[Child] = []
        self._keeper: Keeper | None = None

    def start(self) -> StackAddresses:
        """Start the database if need be, migrate it, start the processes and wait until they are ready.

        Raises:
            DatabaseError: There is no database and none can be started.
            SweephandError: A process ended or did not become ready; what it wrote says why. The stack is stopped.
        """
        try:
            return self._start()
        except BaseException:
            self.stop(grace_seconds=1)
            raise

    def pids(self) -> dict[str, int]:
        """Return the ids of the processes, by role."""
        return {child.name: child.process.pid for child in self._children}

    def ended(self) -> dict[str, int]:
        """Return the exit codes of the processes that have ended by themselves, by role."""
        codes = {child.name: child.process.poll() for child in self._children}
        return {name: code for name, code in codes.items() if code is not None}

    def stop(self, *, grace_seconds: float = 35) -> dict[str, int]:
        """End the processes with SIGTERM, after `grace_seconds` with SIGKILL, then the database; return the exit codes."""
        for child in self._children:
            child.process.terminate()
        deadline = monotonic() + grace_seconds
        codes: dict[str, int] = {}
        for child in self._children:
            try:
                codes[child.name] = child.process.wait(max(0.0, deadline - monotonic()))
            except TimeoutExpired:
                child.process.kill()
                codes[child.name] = child.process.wait(_KILL_SECONDS)
            child.reader.join(timeout=_READER_SECONDS)
        if self._keeper is not None:
            self._keeper.dismiss()
            self._keeper = None
        self._children.clear()
        self._resources.close()
        return codes

    def _start(self) -> StackAddresses:
        is_embedded = self._database_url is None and not os.environ.get("DATABASE_URL")
        database_url = self._database_url or self._resources.enter_context(database_url_or_embedded(data_dir=self._data_dir))
        self._migrate(database_url)
        ports = {role: _free_port() for role in self._roles}
        api_port = self._api_port or _free_port()
        for role in self._roles:
            environment = self._variables(database_url, api_port=api_port, metrics_port=ports[role])
            self._children.append(start_child(role, [role], environment=environment, on_line=self._on_line))
        self._keeper = start_keeper(self._children)
        addresses = StackAddresses(
            api_url=f"http://127.0.0.1:{api_port}",
            endpoint_urls={role: f"http://127.0.0.1:{port}" for role, port in ports.items()},
            database_url=database_url,
            is_embedded=is_embedded,
        )
        for role, url in addresses.endpoint_urls.items():
            self._wait_for(lambda url=url: _is_ready(url), what=f"{role} to become ready")  # type: ignore[misc]
        return addresses

    def _migrate(self, database_url: str) -> None:
        environment = self._variables(database_url, api_port=0, metrics_port=0)
        migration = start_child("migrate", ["migrate"], environment=environment, on_line=self._on_line)
        keeper = start_keeper([migration])
        try:
            code = migration.process.wait(_READY_SECONDS)
        finally:
            migration.process.kill()
            migration.reader.join(timeout=_READER_SECONDS)
            keeper.dismiss()
        if code != 0:
            raise SweephandError(f"sweephand migrate ended with exit code {code}; its lines say why")

    def _variables(self, database_url: str, *, api_port: int, metrics_port: int) -> dict[str, str]:
        defaults = {"SWEEPHAND_ELECTOR": "postgres", "SWEEPHAND_ENVIRONMENT": "development"}
        fixed = {
            "DATABASE_URL": database_url,
            "SWEEPHAND_APP": self._app_target,
            # Nothing of a developer's machine is served to its network.
            "SWEEPHAND_API_HOST": "127.0.0.1",
            "SWEEPHAND_API_PORT": str(api_port),
            "SWEEPHAND_METRICS_PORT": str(metrics_port),
            "PYTHONUNBUFFERED": "1",
        }
        return {**defaults, **os.environ, **self._environment, **fixed}

    def _wait_for(self, is_done: Callable[[], bool], *, what: str) -> None:
        deadline = monotonic() + _READY_SECONDS
        pause = Event()
        while not is_done():
            for role, code in self.ended().items():
                raise SweephandError(f"sweephand {role} ended with exit code {code}; its lines say why")
            if monotonic() > deadline:
                raise SweephandError(f"waited {_READY_SECONDS:g} s in vain for {what}; its lines say why")
            pause.wait(_POLL_SECONDS)


def _free_port() -> int:
    for port in random.sample(_PORTS, 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise SweephandError(f"100 ports between {_PORTS.start} and {_PORTS.stop - 1} are all taken")


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:  # noqa: S310 - our own http URL
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
