"""A lease server in virtual time, and one process's client of it over a network with every fault."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sweephand.model.lease import (
    LeaseConflictError,
    LeaseError,
    LeaseFailure,
    LeaseForbiddenError,
    LeaseMissingError,
    LeaseRecord,
    LeaseUnauthorizedError,
    LeaseUnavailableError,
    StoredLease,
)
from tests.support.virtual_time import VirtualProcess, VirtualWorld


class Fault(StrEnum):
    """What happens to each request of one process."""

    NONE = "none"
    SLOW = "slow"  # answered after 1.2 s
    CRAWLING = "crawling"  # applied after 7 s, when the client has given up
    LOST = "lost"  # never arrives
    UNANSWERED = "unanswered"  # applied, but the answer never arrives
    RESET = "reset"  # never arrives, and the connection breaks
    RESET_AFTER = "reset_after"  # applied, and the connection breaks
    SERVER_ERROR = "server_error"
    SERVER_ERROR_AFTER = "server_error_after"  # applied, and answered with 500
    CONFLICT = "conflict"  # each write is answered with 409
    FORBIDDEN = "forbidden"
    UNAUTHORIZED = "unauthorized"


@dataclass(frozen=True, slots=True)
class Deletion:
    """When a lease was deleted, and how long it had been there."""

    at: float
    lived_seconds: float


class LeaseServer:
    """One lease with compare-and-set, and a watch."""

    def __init__(self, world: VirtualWorld) -> None:
        self._world = world
        self._stored: StoredLease | None = None
        self._version = 100
        self.listeners: list[Callable[[str | None], None]] = []
        self.deletions: list[Deletion] = []
        self._made_at = 0.0
        self.holders: list[tuple[float, str | None]] = []

    def get(self) -> StoredLease:
        if self._stored is None:
            raise LeaseMissingError("no lease")
        return self._stored

    def create(self, record: LeaseRecord) -> StoredLease:
        if self._stored is not None:
            raise LeaseConflictError("exists")
        self._made_at = self._world.now
        return self._write(record)

    def replace(self, stored: StoredLease, record: LeaseRecord) -> StoredLease:
        if self._stored is None or self._stored.version != stored.version:
            raise LeaseConflictError("changed")
        return self._write(record)

    def delete(self) -> None:
        if self._stored is not None:
            self._stored = None
            self.deletions.append(Deletion(self._world.now, self._world.now - self._made_at))
            self.holders.append((self._world.now, None))
            self._tell(None)

    def _write(self, record: LeaseRecord) -> StoredLease:
        self._version += 1
        self._stored = StoredLease(record, version=str(self._version), body={})
        self.holders.append((self._world.now, record.holder))
        self._tell(self._stored.version)
        return self._stored

    def _tell(self, version: str | None) -> None:
        for listener in self.listeners:
            listener(version)


class LeaseClient:
    """The `LeaseStore` of one process, over a network with faults."""

    def __init__(self, world: VirtualWorld, *, server: LeaseServer, process: VirtualProcess) -> None:
        self._world = world
        self._server = server
        self._process = process
        self.fault = Fault.NONE
        self.generation = 0
        self.has_seen = False
        self.made_at: float | None = None
        self.was_blind = False

    async def get(self) -> StoredLease:
        return await self._ask(self._server.get, is_write=False)

    async def create(self, record: LeaseRecord) -> StoredLease:
        was_blind = not self.has_seen
        stored = await self._ask(lambda: self._server.create(record), is_write=True)
        self.made_at, self.was_blind = self._world.now, was_blind
        return stored

    async def replace(self, stored: StoredLease, *, record: LeaseRecord) -> StoredLease:
        return await self._ask(lambda: self._server.replace(stored, record), is_write=True)

    async def close(self) -> None:
        pass

    async def _ask(self, request: Callable[[], StoredLease], *, is_write: bool) -> StoredLease:
        fault, generation = self.fault, self.generation
        seconds = {Fault.SLOW: 1.2, Fault.CRAWLING: 7.0}.get(fault, 0.01)
        answer: asyncio.Future[StoredLease] = self._process.loop.create_future()

        def arrive() -> None:
            if generation != self.generation:
                return  # the network forgot it when the fault ended
            result = _outcome(fault, request=request, is_write=is_write)
            if result is not None:
                self._world.at(seconds, lambda: self._process.call(lambda: _deliver(answer, result)))

        self._world.at(seconds, arrive)
        stored = await answer
        self.has_seen = True
        return stored

    def heal(self) -> None:
        """End the fault; what is still under way is lost."""
        self.fault = Fault.NONE
        self.generation += 1


def _outcome(fault: Fault, *, request: Callable[[], StoredLease], is_write: bool) -> StoredLease | LeaseError | None:
    """Let the server deal with a request, or not, and return what the client gets, None if nothing."""
    refusal = _refusal(fault, is_write=is_write)
    if refusal is not None or fault is Fault.LOST:
        return refusal
    try:
        result: StoredLease | LeaseError = request()
    except LeaseError as error:
        result = error
    match fault:
        case Fault.RESET_AFTER:
            return LeaseUnavailableError("reset", failure=LeaseFailure.NETWORK)
        case Fault.SERVER_ERROR_AFTER:
            return LeaseUnavailableError("500", failure=LeaseFailure.SERVER)
        case Fault.UNANSWERED:
            return None
        case _:
            return result


def _refusal(fault: Fault, *, is_write: bool) -> LeaseError | None:
    match fault:
        case Fault.RESET:
            return LeaseUnavailableError("reset", failure=LeaseFailure.NETWORK)
        case Fault.SERVER_ERROR:
            return LeaseUnavailableError("500", failure=LeaseFailure.SERVER)
        case Fault.CONFLICT if is_write:
            return LeaseConflictError("409")
        case Fault.FORBIDDEN:
            return LeaseForbiddenError(verb="update", resource="leases", name="x", subject="me")
        case Fault.UNAUTHORIZED:
            return LeaseUnauthorizedError("401")
        case _:
            return None


def _deliver(answer: "asyncio.Future[StoredLease]", result: StoredLease | LeaseError) -> None:
    if answer.done():
        return
    if isinstance(result, LeaseError):
        answer.set_exception(result)
    else:
        answer.set_result(result)
