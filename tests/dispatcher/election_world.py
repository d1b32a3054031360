"""Electors in a virtual world, their work on one fenced database, and a referee of what must hold at every moment."""

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NoReturn

from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.lease import Moment
from sweephand.dispatcher.lease_elector import LeaseElector
from sweephand.model.lease import LeaseFailure, LeaseTimings
from sweephand.telemetry.labels import AcquiredHow, LostReason
from tests.dispatcher.virtual_database import Database
from tests.dispatcher.virtual_lease import Fault, LeaseClient, LeaseServer
from tests.support.virtual_time import VirtualProcess, VirtualWorld

TICK_SECONDS = 1.5
TRANSACTION_SECONDS = 0.05
EPOCH = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Clock:
    world: VirtualWorld
    offset: float
    skew: timedelta

    def moment(self) -> Moment:
        now = self.world.now + self.offset
        return Moment(now, now + 5000.0)

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.world.now) + self.skew


class AbortedError(BaseException):
    """Say that a process ended itself."""


@dataclass(slots=True)
class Observer:
    """What one elector told of its leaderships."""

    world: VirtualWorld
    gained: list[tuple[float, AcquiredHow]] = field(default_factory=list)
    losses: list[tuple[float, LostReason]] = field(default_factory=list)
    is_unconfirmed: bool = False

    def acquired(self, how: AcquiredHow) -> None:
        self.gained.append((self.world.now, how))

    def lost(self, reason: LostReason) -> None:
        self.losses.append((self.world.now, reason))

    def unconfirmed(self, is_unconfirmed: bool) -> None:  # noqa: FBT001 the protocol's form
        assert is_unconfirmed is not self.is_unconfirmed
        self.is_unconfirmed = is_unconfirmed

    def renew_seconds(self, seconds: float) -> None:
        assert seconds >= 0

    def renew_error(self, failure: LeaseFailure) -> None:
        assert failure in LeaseFailure


class Dispatcher:
    """The work of one replica: raise the term, then tick until cancelled, each tick in a fenced transaction."""

    def __init__(self, process: VirtualProcess, *, database: Database) -> None:
        self._process = process
        self._database = database
        self.term = 0
        self.last_term = 0
        self.is_stalled = False
        self.ending_seconds = 0.0

    async def lead(self, leadership: Leadership) -> None:
        try:
            self.term = self.last_term = await self._database.gain(self._process)
            while True:
                if not self.is_stalled:
                    leadership.beat()
                    await self._tick()
                await asyncio.sleep(TICK_SECONDS)
        finally:
            self.term = 0
            await asyncio.sleep(self.ending_seconds)

    async def is_fence_mine(self) -> bool:
        self._database.reach(self._process)
        return self.term in (0, self._database.term)

    async def _tick(self) -> None:
        transaction = self._database.begin(self._process, term=self.term)
        try:
            await asyncio.sleep(TRANSACTION_SECONDS)
            self._database.commit(transaction, term=self.term, process=self._process)
        finally:
            self._database.rollback(transaction)


@dataclass(slots=True)
class Replica:
    """One process that contends for the lead."""

    process: VirtualProcess
    client: LeaseClient
    dispatcher: Dispatcher
    observer: Observer
    elector: LeaseElector
    timings: LeaseTimings
    main: "asyncio.Task[None]"
    was_aborted: bool = False
    suffered: set[str] = field(default_factory=set)
    judged_losses: int = 0
    thawed_at: float = 0.0

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def is_running(self) -> bool:
        return not self.process.is_dead and not self.process.is_frozen


class ElectionWorld:
    """All of it, with a referee who looks at every moment."""

    def __init__(self, *, timings: LeaseTimings, has_watch: bool) -> None:
        self.world = VirtualWorld()
        self.world.after_each_step = self._referee
        self.timings = timings
        self.server = LeaseServer(self.world)
        self.database = Database(self.world)
        self.replicas: list[Replica] = []
        self._has_watch = has_watch
        self._judged = 0
        self._highest_term = 0

    def start(self, *, skew_seconds: float = 0.0, jitter: float = 0.5, timings: LeaseTimings | None = None) -> Replica:
        """Start a replica, with its own idea of the time."""
        timings = timings or self.timings
        process = self.world.process(f"replica-{len(self.replicas)}")
        client = LeaseClient(self.world, server=self.server, process=process)
        dispatcher = Dispatcher(process, database=self.database)
        observer = Observer(self.world)
        elector = LeaseElector(
            client,
            identity=process.name,
            timings=timings,
            ask_fence=dispatcher.is_fence_mine,
            observer=observer,
            clock=_Clock(self.world, 7.0 * len(self.replicas), timedelta(seconds=skew_seconds)),
            abort=_abort,
            jitter=lambda: jitter,
        )
        main = process.spawn(elector.run(dispatcher.lead))
        replica = Replica(process, client, dispatcher, observer, elector, timings, main)
        self.replicas.append(replica)
        if self._has_watch:
            self.server.listeners.append(lambda version: self._tell(replica, version))
        return replica

    def kill(self, replica: Replica) -> None:
        """SIGKILL: its transactions end with its connections; requests that are under way still arrive."""
        replica.process.is_dead = True
        self.database.disconnect(replica.process)

    def cut(self, fault: Fault, *replicas: Replica) -> None:
        """Let the requests of these replicas fail, or of all if none is named."""
        for replica in replicas or self.alive:
            replica.client.fault = fault
            replica.suffered.add(fault)

    def heal(self) -> None:
        """Let all requests succeed; what is still under way is lost."""
        for replica in self.alive:
            replica.client.heal()

    def lose_database(self, replica: Replica) -> None:
        self.database.unreachable.add(replica.name)
        replica.suffered.add("database")

    def stall(self, replica: Replica) -> None:
        """Let the work make no progress."""
        replica.dispatcher.is_stalled = True
        replica.suffered.add("stall")

    def slow_down(self, replica: Replica, *, ending_seconds: float) -> None:
        """Let the work take so long to end."""
        replica.dispatcher.ending_seconds = ending_seconds
        replica.suffered.add("slow end")

    def freeze(self, replica: Replica) -> None:
        """SIGSTOP."""
        replica.process.is_frozen = True
        replica.suffered.add("freeze")

    def thaw(self) -> None:
        """SIGCONT, to all."""
        for replica in self.alive:
            if replica.process.is_frozen:
                replica.process.is_frozen = False
                replica.thawed_at = self.world.now

    def stop(self, replica: Replica) -> None:
        """SIGTERM."""
        replica.suffered.add("stop")
        replica.process.call(replica.elector.stop)

    def close(self) -> None:
        self.world.after_each_step = lambda: None
        self.world.close()

    @property
    def alive(self) -> list[Replica]:
        return [replica for replica in self.replicas if not replica.process.is_dead]

    def confirmed(self) -> list[Replica]:
        """Return the replicas that are sure to lead, frozen ones too."""
        return [replica for replica in self._leading() if replica.elector.status.is_confirmed]

    def _leading(self) -> list[Replica]:
        return [replica for replica in self.alive if len(replica.observer.gained) > len(replica.observer.losses)]

    def _tell(self, replica: Replica, version: str | None) -> None:
        if replica.client.fault in (Fault.NONE, Fault.SLOW):
            self.world.at(0.03, lambda: replica.process.call(lambda: replica.elector.wake(version)))

    def _referee(self) -> None:
        for replica in self.alive:
            if replica.main.done():
                replica.was_aborted = not replica.main.cancelled() and isinstance(replica.main.exception(), AbortedError)
                self.kill(replica)
            elif not replica.process.is_frozen and self.world.now > replica.thawed_at + 2 * self.timings.request_seconds:
                assert replica.elector.is_live() is None
            self._judge_losses(replica)
        for commit in self.database.commits[self._judged :]:
            assert commit.term >= self._highest_term, f"term {commit.term} committed after term {self._highest_term}"
            self._highest_term = commit.term
        self._judged = len(self.database.commits)
        # Asked of each elector only where there can be two: this runs at every moment of thousands of elections.
        confirmed = self.confirmed() if len(self._leading()) > 1 else []
        if len(confirmed) > 1 and not any(self._is_excused(replica) for replica in confirmed):
            raise AssertionError(f"{[replica.name for replica in confirmed]} are confirmed at once")

    def _judge_losses(self, replica: Replica) -> None:
        for _, reason in replica.observer.losses[replica.judged_losses :]:
            assert self._is_real(replica, reason), f"{replica.name} stood down: {reason}"
        replica.judged_losses = len(replica.observer.losses)

    def _is_real(self, replica: Replica, reason: LostReason) -> bool:
        """A leader stands down for a reason that is real, and an API server that does not answer is none."""
        match reason:
            case LostReason.TAKEN:
                gained_at = replica.observer.gained[-1][0]
                return any(at > gained_at - 0.02 and name != replica.name for at, name in self.server.holders)
            case LostReason.FENCED | LostReason.FROZEN:
                return self.database.term > replica.dispatcher.last_term
            case LostReason.FORBIDDEN:
                return Fault.FORBIDDEN in replica.suffered
            case LostReason.SHUTDOWN:
                return "stop" in replica.suffered
            case LostReason.STUCK:
                # Work that fails and then takes long to end makes no progress either.
                return bool({"stall", "slow end"} & replica.suffered)
            case LostReason.ERROR:
                return bool({"database", "freeze"} & replica.suffered)

    def _is_excused(self, replica: Replica) -> bool:
        """What nobody can know: a process that never saw the lease, or a lease that was gone before anybody looked."""
        made_at = replica.client.made_at
        return made_at is not None and any(
            deletion.at <= made_at
            and self.world.now < deletion.at + self.timings.renew_deadline_seconds
            and (replica.client.was_blind or deletion.lived_seconds <= self.timings.renew_deadline_seconds)
            for deletion in self.server.deletions
        )


def _abort() -> NoReturn:
    raise AbortedError
