"""The lease as data: its record, the store that keeps it, the durations, and how a request for it fails.

What is done with it stands in `sweephand.dispatcher.lease`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from sweephand.model.errors import SettingsError, SweephandError


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """Who holds the lease, as it is written down. An empty `holder` means nobody: it was released.

    The two moments are for people. No candidate compares them with a clock.
    """

    holder: str
    lease_seconds: int
    acquired_at: datetime | None
    renewed_at: datetime | None
    transitions: int


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A record as a store answered it: `version` changes with every write, `body` is the store's own and kept as it came."""

    record: LeaseRecord
    version: str
    body: Mapping[str, object]


class LeaseFailure(StrEnum):
    """Why a request for the lease failed; the values are the label of the metric."""

    CONFLICT = "conflict"
    FORBIDDEN = "forbidden"
    UNAUTHORIZED = "unauthorized"
    NOT_FOUND = "not_found"
    TIMEOUT = "timeout"
    NETWORK = "network"
    SERVER = "server"
    OTHER = "other"


class LeaseError(SweephandError):
    """Be the root of what a request for the lease may raise; `failure` is its kind."""

    failure = LeaseFailure.OTHER


class LeaseConflictError(LeaseError):
    """Say that another write came first: the record is not the one that was read, or exists already."""

    failure = LeaseFailure.CONFLICT


class LeaseMissingError(LeaseError):
    """Say that there is no such lease."""

    failure = LeaseFailure.NOT_FOUND


class LeaseUnauthorizedError(LeaseError):
    """Say that the store does not know who asks: the token or password is wrong or has expired."""

    failure = LeaseFailure.UNAUTHORIZED


class LeaseUnavailableError(LeaseError):
    """Say that nobody answered, or not to the point: whether a write landed is unknown."""

    def __init__(self, message: str, *, failure: LeaseFailure) -> None:
        super().__init__(message)
        self.failure = failure


class LeaseForbiddenError(LeaseError):
    """Say which right is missing, for whom and on what."""

    failure = LeaseFailure.FORBIDDEN

    def __init__(self, *, verb: str, resource: str, name: str, subject: str) -> None:
        super().__init__(f"{subject} may not {verb} {resource} {name!r}; grant it that right")
        self.verb = verb
        self.resource = resource
        self.name = name
        self.subject = subject


class LeaseStore(Protocol):
    """Keep one lease, each write compared with the version that was read.

    The contract, which its tests check for every store:

    - Of several writes that follow the same read, or of several creations, exactly one succeeds.
    - A lease that was deleted and made again is another one: a write that follows a read of the first is a conflict.
    - A request that is cancelled ends at once, whatever the network does. Its write may land all the same, but only as
      long as nothing else was written.
    - The body of what was read, with all that the store does not know, is still there after a write.
    - Every failure is a `LeaseError`.
    """

    async def get(self) -> StoredLease:
        """Return the lease as it is now.

        Raises:
            LeaseMissingError: there is none.
        """
        ...

    async def create(self, record: LeaseRecord) -> StoredLease:
        """Make the lease.

        Raises:
            LeaseConflictError: it exists.
        """
        ...

    async def replace(self, stored: StoredLease, *, record: LeaseRecord) -> StoredLease:
        """Write another record in place of the one that was read.

        Raises:
            LeaseConflictError: it was changed, deleted or made again since.
        """
        ...

    async def close(self) -> None:
        """Give the connection back. The store is not used afterwards."""
        ...


@dataclass(frozen=True, slots=True)
class LeaseTimings:
    """The three durations of an election: lease > renew deadline > 1.2 × retry period.

    Attributes:
        lease_seconds: how long the others wait after they saw the last renewal; a whole number, at least 1.
        renew_deadline_seconds: how long a leader counts on its last renewal; the rest of the lease is for ending its work.
        retry_period_seconds: the time between two renewals, or two looks of a follower.

    Raises:
        SettingsError: two of them do not fit; both names and values are in the message.

    Source: client-go, tools/leaderelection (the defaults 15, 10, 2 and the factor 1.2).
    """

    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.lease_seconds < 1 or self.lease_seconds != int(self.lease_seconds):
            raise SettingsError(f"lease_seconds={self.lease_seconds}: must be a whole number of seconds, at least 1")
        for name in ("renew_deadline_seconds", "retry_period_seconds"):
            seconds = getattr(self, name)
            if not (math.isfinite(seconds) and seconds > 0):
                raise SettingsError(f"{name}={seconds}: must be a number of seconds above 0")
        if self.lease_seconds <= self.renew_deadline_seconds:
            raise SettingsError(
                f"lease_seconds={self.lease_seconds} and renew_deadline_seconds={self.renew_deadline_seconds:g}: "
                "the lease must be longer than the renew deadline"
            )
        if self.renew_deadline_seconds <= 1.2 * self.retry_period_seconds:
            raise SettingsError(
                f"renew_deadline_seconds={self.renew_deadline_seconds:g} and "
                f"retry_period_seconds={self.retry_period_seconds:g}: "
                "the renew deadline must be longer than 1.2 retry periods"
            )

    @property
    def request_seconds(self) -> float:
        """How long one request may take, so that a second one fits before the deadline."""
        return self.renew_deadline_seconds / 2

    @property
    def ending_seconds(self) -> float:
        """How long the work of a lost leadership may take to end: until the others may begin."""
        return self.lease_seconds - self.renew_deadline_seconds
