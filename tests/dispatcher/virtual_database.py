"""A database in virtual time: one leader row with its term, and transactions that share or take its lock."""

import asyncio
from dataclasses import dataclass, field

from sweephand.model.errors import FencedError
from tests.support.virtual_time import VirtualProcess, VirtualWorld

IDLE_TRANSACTION_SECONDS = 4.0


@dataclass(slots=True)
class Commit:
    """A transaction that changed something."""

    at: float
    term: int
    by: str


@dataclass(slots=True)
class Database:
    """One leader row, its term, and transactions that share or take its lock."""

    world: VirtualWorld
    term: int = 0
    commits: list[Commit] = field(default_factory=list)
    shared: dict[object, VirtualProcess] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)

    def begin(self, process: VirtualProcess, *, term: int) -> object:
        """Begin a transaction and take its fence."""
        self.reach(process)
        if term != self.term:
            raise FencedError(f"term {term} has been followed by term {self.term}")
        transaction = object()
        self.shared[transaction] = process
        # The server ends transactions that nobody goes on with.
        self.world.at(IDLE_TRANSACTION_SECONDS, lambda: self.rollback(transaction))
        return transaction

    def commit(self, transaction: object, *, term: int, process: VirtualProcess) -> None:
        self.reach(process)
        if self.shared.pop(transaction, None) is None:
            raise ConnectionError("the transaction was ended by the server")
        self.commits.append(Commit(self.world.now, term, process.name))

    def rollback(self, transaction: object) -> None:
        self.shared.pop(transaction, None)

    def disconnect(self, process: VirtualProcess) -> None:
        """End the transactions of a process whose connections broke."""
        for transaction, owner in list(self.shared.items()):
            if owner is process:
                self.rollback(transaction)

    def reach(self, process: VirtualProcess) -> None:
        if process.name in self.unreachable:
            raise ConnectionError("the database cannot be reached")

    async def gain(self, process: VirtualProcess) -> int:
        """Begin the next term, once no transaction shares the lock."""
        while self.shared:  # noqa: ASYNC110 virtual time: nothing waits
            await asyncio.sleep(0.1)
        self.reach(process)
        self.term += 1
        return self.term
