"""Decide who leads by one record, the lease: the specification, and what a candidate knows of the record.

One candidate per process (`sweephand.dispatcher.elector`), one record that all of them read and write with
compare-and-set: a Kubernetes Lease, a row in PostgreSQL, or the process's own memory (a `LeaseStore`).

    follower ──── it is free, has expired or is mine, and my write succeeded ───▶ confirmed leader
        ▲                                                                          │         ▲
        │                                                     the renew deadline   │         │ a write
        │                                                     passed, and nobody   ▼         │ succeeded
        ├──────────────── taken · fenced · forbidden · stuck · error ──── unconfirmed leader ┘
        └──────────────── shutdown: end the work while renewing, then release

**Trust.** A leader counts its trust from the *start* of its last successful write and ends it after the renew deadline. The
others count from the moment when they *saw* that write, which is later, and wait the record's whole lease, which is longer.
So two leaders are never confirmed at once, as long as the clocks of two machines run at about the same speed: what they show
does not matter, since nobody compares another's moment with a clock. Trust ends by itself, also in a process whose event
loop stands still, and counts the time in which the machine slept. Two exceptions are left to the fence, for what is left of a
deadline: a process that starts just after the lease was deleted cannot know that it had a leader; and of a lease that is
made and deleted again between two looks nobody but its maker knows.

**Follower.** Every retry period (× 1 to 1.2), when the watch wakes it, and at the very moment of expiry it reads the record. A
record that changed since the last look starts a new lease on the local clock; so a fresh process waits a whole lease before
it takes one over. It waits the duration that is *in the record*, the other's, not its own. It writes with the version that
it read; a conflict means that the race is lost. A record in its own name, which it does not remember, is a write that timed
out and landed all the same: it renews it. Where there never was a record, it makes one. One that was deleted may still have a
confirmed leader, who makes it anew at once; everybody else waits a lease from the moment when they miss it. After a time in
which nobody answered, an expired lease is left a moment longer: its leader, unconfirmed but at work, is about to renew it.

**Confirmed leader.** It renews every retry period, with the cached object (its uid too, so that a deleted Lease is a conflict
rather than made anew), each request within half the deadline or what is left of it. After a conflict it reads: its own name is
renewed, a missing record made anew while trust lasts; any other name, also none, is the end of this leadership.

**Unconfirmed leader.** The deadline passed and *nobody answers*: timeouts, resets, 5xx, 401, 429. The work goes on, because the
lease only saves work: truth is guarded by the database, where each transaction takes the fence of its term, and whoever gains
the lease raises the term first. So an API server that is away costs no tick. It is seen (`is_unconfirmed`, a metric, a log
line) and ends by a renewal, by another's name in the record or by the fence.

**The end.** Whoever *knows* better ends the work at once: another's name (taken), a `FencedError` of the work (fenced), a refusal
that outlasts the deadline (forbidden: never lead without the lease). The flag goes first, then the work is cancelled and has
until the lease would end; work that outlasts that ends the process. Work that raises (error) or stops calling `beat`
(stuck) gives the lease up, and contends again after a retry period. A lost lease never ends the process.

**Frozen.** Time between two turns that exceeds the deadline (SIGSTOP, a suspended machine, a starved loop) means that the world
may have gone on: the candidate asks the fence before anything else.

**Release.** On shutdown the work ends while the lease is still renewed; then the record gets no holder and a lease of one
second, with its version, and only while trust lasts. One who is not sure to hold the lease never releases it.

**Liveness** fails if the candidate's task ended, or has not turned for the deadline and a lease together. Being unconfirmed
is no reason: a restart would cost the ticks that going on saves.

Sources: client-go tools/leaderelection; River internal/leadership (trust from the attempt's start).
"""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Protocol

from sweephand.model.lease import LeaseConflictError, LeaseMissingError, LeaseRecord, LeaseTimings, StoredLease


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in this machine's time, on the clock that stops while the machine sleeps and on the one that does not."""

    monotonic: float
    boot: float

    def elapsed(self, *, until: "Moment") -> float:
        """Return the seconds from here to `until`, a sleep of the machine included."""
        return max(until.monotonic - self.monotonic, until.boot - self.boot)


class Clock(Protocol):
    """Tell the time of this machine."""

    def moment(self) -> Moment:
        """Return the present moment; what elapses is measured by it."""
        ...

    def now(self) -> datetime:
        """Return the wall clock's aware UTC time; it is only ever written down."""
        ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clocks."""

    def moment(self) -> Moment:
        """Return the present moment. Where there is no boot clock, a sleep of the machine is not noticed by it."""
        boot_clock = getattr(time, "CLOCK_BOOTTIME", None)
        monotonic = time.monotonic()
        return Moment(monotonic, monotonic if boot_clock is None else time.clock_gettime(boot_clock))

    def now(self) -> datetime:
        """Return the wall clock's time."""
        return datetime.now(UTC)


class Standing(StrEnum):
    """How a candidate finds the lease. DELETED and HELD are to be left alone for a while, the others are there to take."""

    MISSING = "missing"
    DELETED = "deleted"
    RELEASED = "released"
    EXPIRED = "expired"
    MINE = "mine"
    HELD = "held"


class LeaseView:
    """What one candidate knows of the lease: the last record, and since when on its own clock it looks like that."""

    def __init__(self, identity: str, *, timings: LeaseTimings) -> None:
        self._identity = identity
        self._timings = timings
        self._stored: StoredLease | None = None
        self._changed_at = 0.0
        self._looked_at = 0.0
        self._is_missing = False

    @property
    def stored(self) -> StoredLease | None:
        """The record as last seen; None before the first look."""
        return self._stored

    @property
    def holder(self) -> str | None:
        """The holder as last seen, None if nobody holds it or it was never seen."""
        return (self._stored.record.holder or None) if self._stored else None

    def observe(self, stored: StoredLease, *, at: Moment) -> None:
        """Take in what the store answered at this moment."""
        if self._stored is None or self._is_missing or self._stored.version != stored.version:
            self._changed_at = at.monotonic
        self._stored = stored
        self._looked_at = at.monotonic
        self._is_missing = False

    def miss(self, *, at: Moment) -> None:
        """Take in that the store has no record any more, or never had one."""
        # Between two looks that are far apart it may have been there, with a leader.
        was_watched = at.monotonic - self._looked_at <= self._timings.renew_deadline_seconds
        if not (self._is_missing and was_watched):
            self._changed_at = at.monotonic
        self._looked_at = at.monotonic
        self._is_missing = True

    def standing(self, at: Moment) -> Standing:
        """Return how the lease is to be seen at this moment, by what was observed last."""
        if self._stored is None:
            return Standing.MISSING
        if self._is_missing:
            return Standing.DELETED if self.seconds_left(at) > 0 else Standing.MISSING
        if not self._stored.record.holder:
            return Standing.RELEASED
        if self._stored.record.holder == self._identity:
            return Standing.MINE
        return Standing.HELD if self.seconds_left(at) > 0 else Standing.EXPIRED

    def seconds_left(self, at: Moment) -> float:
        """Return how long the record as last seen may still be another's to renew; not above 0 once it has expired."""
        if self._stored is None:
            return 0.0
        seconds = self._stored.record.lease_seconds
        if seconds <= 0 or self._is_missing:
            # Without a duration it was not written by one of us; deleted, it may have been anybody's meanwhile.
            seconds = max(seconds, self._timings.lease_seconds)
        return self._changed_at + seconds - at.monotonic

    def holding(self, now: datetime) -> LeaseRecord:
        """Return the record that takes the lease over, or renews it if it is in this candidate's name."""
        before = self._stored.record if self._stored else None
        is_mine = before is not None and before.holder == self._identity
        return LeaseRecord(
            holder=self._identity,
            lease_seconds=self._timings.lease_seconds,
            acquired_at=(before.acquired_at if before and is_mine else None) or now,
            renewed_at=now,
            transitions=0 if before is None else before.transitions + (0 if is_mine else 1),
        )

    def founding(self, now: datetime) -> LeaseRecord:
        """Return the first record of a lease that does not exist."""
        return LeaseRecord(self._identity, self._timings.lease_seconds, acquired_at=now, renewed_at=now, transitions=0)

    def releasing(self, now: datetime) -> LeaseRecord:
        """Return the record that gives the lease up, so that others need not wait for its end."""
        transitions = self._stored.record.transitions if self._stored else 0
        return LeaseRecord("", 1, acquired_at=now, renewed_at=now, transitions=transitions)


class ProcessLease:
    """A lease that only this process knows, so that its candidate always leads: a `LeaseStore` in memory."""

    def __init__(self) -> None:
        self._stored: StoredLease | None = None
        self._writes = 0

    async def get(self) -> StoredLease:
        """Return the lease."""
        if self._stored is None:
            raise LeaseMissingError("this process has no lease yet")
        return self._stored

    async def create(self, record: LeaseRecord) -> StoredLease:
        """Make the lease."""
        if self._stored is not None:
            raise LeaseConflictError("this process has a lease already")
        return self._write(record)

    async def replace(self, stored: StoredLease, *, record: LeaseRecord) -> StoredLease:
        """Write another record in place of the one that was read."""
        if self._stored is None or self._stored.version != stored.version:
            raise LeaseConflictError("this process's lease was changed since it was read")
        return self._write(record)

    async def close(self) -> None:
        """Keep nothing open."""

    def _write(self, record: LeaseRecord) -> StoredLease:
        self._writes += 1
        self._stored = StoredLease(record, version=str(self._writes), body={})
        return self._stored
