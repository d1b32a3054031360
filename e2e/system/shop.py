"""What a case can ask of a shop, and do to it, wherever it runs."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from e2e.system.kubernetes import as_list
from e2e.system.ledger import Ledger
from e2e.system.scrapes import Scrapes


@dataclass(frozen=True, slots=True)
class Timings:
    """Be the seconds that a shop runs by."""

    lease: float
    retry: float
    interval: float
    """Between two ticks of the sweep. Half of it, in which a tick counts as on time, is longer than a hand-over may take (3 s);
    and the lease without a retry and that half is longer than the interval, so that a killed leader always costs a tick."""
    outage: float
    """How long something is away for long: many leases, and many ticks."""
    short_outage: float
    """How long something is away for a while: some leases."""
    silence: float
    """How long the API server is away at a time: some leases."""
    long_job: float
    """How long a job takes that outlives a probe's patience, and ends within a worker's grace."""


@dataclass(frozen=True, slots=True)
class Event:
    """Be something that was done to a shop, for the timeline."""

    at: datetime
    text: str


@dataclass(slots=True)
class Diary:
    """Hold what was done to a shop, in order."""

    events: list[Event] = field(default_factory=list)

    def note(self, text: str) -> datetime:
        """Write that something is done now; returns when."""
        event = Event(datetime.now(UTC), text)
        self.events.append(event)
        return event.at


@dataclass(frozen=True, slots=True)
class Load:
    """Be what customers did meanwhile: the products that they created, and what they were told when they could not."""

    created: list[int] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def take(self, said: Mapping[str, object]) -> None:
        """Take over what load.py printed in the end."""
        self.created.extend(int(str(one)) for one in as_list(said["created"]))
        self.refused.extend(str(one) for one in as_list(said["refused"]))


class Shop(Protocol):
    """Be the storefront with its API, workers, dispatchers and database.

    What a method does to the shop is in the diary. It returns when the thing is done, not when the shop has recovered.
    """

    @property
    def timings(self) -> Timings:
        """The seconds that it runs by."""
        ...

    @property
    def diary(self) -> Diary:
        """What was done to it."""
        ...

    @property
    def ledger(self) -> Ledger:
        """What its database holds."""
        ...

    @property
    def scrapes(self) -> Scrapes:
        """What Prometheus recorded of it."""
        ...

    def create_product(self) -> int:
        """Create a product over the API, which enqueues its publication; returns its id."""
        ...

    def load(self, *, per_second: float) -> AbstractContextManager[Load]:
        """Let customers create products for the block. What they did is in the load once the block has ended."""
        ...

    def readiness(self, component: str) -> str:
        """Return what a running process of a component (api, worker, dispatcher) answers to /readyz."""
        ...

    def lease_holder(self) -> str | None:
        """Return the identity in the Lease, None for nobody's."""
        ...

    def restarts(self) -> int:
        """Return how often processes of the shop ended by themselves, or were ended by probes, since it was made."""
        ...

    def logs(self, component: str) -> str:
        """Return what the running processes of a component (api, worker, dispatcher) logged."""
        ...

    def roll_dispatchers(self) -> None:
        """Replace all dispatchers by new ones as a rolling deployment does, and wait until it is through."""
        ...

    def stop_leader(self) -> datetime:
        """End the leader with SIGTERM; another dispatcher comes in its place. Returns when it was told."""
        ...

    def kill_leader(self) -> datetime:
        """End the leader with SIGKILL; it is started again as the platform does. Returns when it was killed."""
        ...

    def frozen_leader(self) -> AbstractContextManager[datetime]:
        """Stop the leader's process with SIGSTOP for the block. Gives when it was stopped."""
        ...

    def scale_dispatchers(self, count: int) -> None:
        """Run this many dispatchers, and wait until they are there, or gone."""
        ...

    def scale_workers(self, count: int) -> None:
        """Run this many workers, and wait until they are there, or gone."""
        ...

    def slow_warehouse(self, *, seconds: float) -> AbstractContextManager[None]:
        """Let each publication take this long for the block; workers are replaced for it, before and after."""
        ...

    def replace_workers(self) -> None:
        """End each worker with SIGTERM and start another, as a rolling update does, and wait until it is through."""
        ...

    def api_server_paused(self) -> AbstractContextManager[datetime]:
        """Let the Kubernetes API server answer nobody for the block. Gives when it fell silent."""
        ...

    def lease_forbidden(self) -> AbstractContextManager[datetime]:
        """Take the right to the Lease away for the block. Gives when it was taken."""
        ...

    def kill_postgres(self) -> datetime:
        """End PostgreSQL with SIGKILL; it starts again, with its data. Returns when it was killed."""
        ...

    def postgres_stopped(self) -> AbstractContextManager[datetime]:
        """Run no PostgreSQL for the block, and have it answer again after it. Gives when it was stopped."""
        ...
