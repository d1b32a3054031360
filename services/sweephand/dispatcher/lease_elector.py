"""The elector: contends for the lease for ever, as `sweephand.dispatcher.lease` specifies."""

import os
import random
import sys
from collections.abc import Callable
from typing import NoReturn

import structlog

from sweephand.dispatcher.candidate import Candidate
from sweephand.dispatcher.elector import AskFence, ElectionObserver, ElectionStatus, Silence, Work
from sweephand.dispatcher.lease import Clock, SystemClock
from sweephand.dispatcher.reign import Reign
from sweephand.dispatcher.turns import Turns
from sweephand.model.lease import LeaseStore, LeaseTimings
from sweephand.telemetry.labels import AcquiredHow, LostReason

STALL_SECONDS = 20.0
"""How long the work may go without a beat: with the time to end it, a stuck leader is gone within 30 s."""


def exit_at_once() -> NoReturn:
    """End this process without waiting for anything: its work would not end, and another one is about to lead."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


class LeaseElector:
    """An `Elector` over a lease. Make it inside the event loop that runs it."""

    def __init__(
        self,
        store: LeaseStore,
        *,
        identity: str,
        timings: LeaseTimings,
        ask_fence: AskFence | None = None,
        observer: ElectionObserver | None = None,
        stall_seconds: float = STALL_SECONDS,
        look_seconds: float | None = None,
        clock: Clock | None = None,
        abort: Callable[[], NoReturn] = exit_at_once,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """Make an elector that does nothing yet.

        Args:
            store: where the record is kept; closed by whoever made it.
            identity: unique to this process's start, see `unique_identity`.
            timings: the durations of the election.
            ask_fence: asked after a freeze whether the term still stands; without it only the work can tell.
            observer: is told what happens.
            stall_seconds: how long the work may go without a beat.
            look_seconds: how often a follower looks that no watch wakes; the retry period if None, never less often.
            clock: the machine's if None.
            abort: ends the process when the work of a lost leadership would not end.
            jitter: returns 0 to 1, for the waits of followers.
        """
        self._identity = identity
        self._timings = timings
        self._ask_fence = ask_fence
        self._observer = observer or Silence()
        self._stall_seconds = stall_seconds
        self._look_seconds = min(timings.retry_period_seconds, look_seconds or timings.retry_period_seconds)
        self._clock = clock or SystemClock()
        self._abort = abort
        self._jitter = jitter
        self._log = structlog.get_logger("sweephand.dispatcher.elector").bind(identity=identity)
        self._candidate = Candidate(store, identity=identity, timings=timings, clock=self._clock, observer=self._observer)
        self._turns = Turns(clock=self._clock, is_own_write=self._candidate.wrote)
        self._reign: Reign | None = None
        self._death: str | None = None

    @property
    def identity(self) -> str:
        """This process's name in the record."""
        return self._identity

    @property
    def status(self) -> ElectionStatus:
        """What this process knows now."""
        reign, error = self._reign, self._candidate.last_error
        is_leader = reign is not None and not reign.leadership.has_ended()
        return ElectionStatus(
            identity=self._identity,
            is_leader=is_leader,
            is_confirmed=is_leader and reign is not None and reign.leadership.is_confirmed(),
            holder=self._candidate.view.holder,
            since=reign.since if is_leader and reign is not None else None,
            last_error=None if error is None else str(error),
        )

    def wake(self, version: str | None = None) -> None:
        """Look at the record now, unless the change to this version was our own write."""
        self._turns.wake(version)

    def stop(self) -> None:
        """Begin the graceful end."""
        self._candidate.hurry()
        self._turns.stop()

    def is_live(self) -> str | None:
        """Return None, or why this process must be restarted."""
        if self._death is not None:
            return f"the elector ended: {self._death}"
        still_seconds = self._turns.still_seconds()
        if still_seconds > self._timings.renew_deadline_seconds + self._timings.lease_seconds:
            return f"the elector has stood still for {still_seconds:.0f} s"
        return None

    async def run(self, lead: Work) -> None:
        """Contend for ever, and run `lead` while leading. Returns after `stop`, once the lease is released. Runs once."""
        try:
            while not self._turns.is_stopping():
                self._turns.begin()
                await self._contend(lead)
        except BaseException as error:
            self._death = repr(error)
            raise
        finally:
            if self._reign is not None:
                await self._reign.close()

    async def _contend(self, lead: Work) -> None:
        how = await self._candidate.gain()
        if how is None:
            await self._follow()
        elif self._turns.is_stopping():
            await self._candidate.release()
        elif self._candidate.trust_seconds() > 0:  # else it stood still before it began: look again
            reason = await self._lead(lead, how=how)
            if reason is not LostReason.TAKEN:
                # What went wrong would go wrong again at once. Not even the watch ends this wait.
                await self._wait(self._timings.retry_period_seconds, is_wakeable=False)

    async def _lead(self, lead: Work, *, how: AcquiredHow) -> LostReason:
        self._log.info("leader_elected", how=str(how))
        self._observer.acquired(how)
        self._reign = Reign(
            self._candidate,
            turns=self._turns,
            clock=self._clock,
            observer=self._observer,
            stall_seconds=self._stall_seconds,
            ask_fence=self._ask_fence,
            abort=self._abort,
        )
        reason = await self._reign.run(lead)
        self._reign = None
        self._candidate.forget()
        return reason

    async def _follow(self) -> None:
        """Wait until it is time to look again: soon, at once when woken, or at the moment when the lease expires."""
        seconds = self._look_seconds * (1 + 0.2 * self._jitter())
        left = self._candidate.view.seconds_left(self._clock.moment())
        await self._wait(min(seconds, left) if left > 0 else seconds, is_wakeable=True)

    async def _wait(self, seconds: float, *, is_wakeable: bool) -> None:
        begun_at = self._clock.moment()
        while not self._turns.is_stopping() and not (is_wakeable and self._turns.take_wake()):
            left = seconds - begun_at.elapsed(until=self._clock.moment())
            if left <= 0:
                return
            await self._turns.wait(left)
