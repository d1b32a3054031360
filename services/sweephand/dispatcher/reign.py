"""One leadership from its gain to its end: run the work, renew the lease, notice what ends it, and end it well."""

import asyncio
from collections.abc import Callable
from typing import NoReturn

import structlog

from sweephand.dispatcher.candidate import Candidate
from sweephand.dispatcher.elector import AskFence, ElectionObserver, Work
from sweephand.dispatcher.leadership import Leadership
from sweephand.dispatcher.lease import Clock
from sweephand.dispatcher.turns import Turns
from sweephand.model.errors import FencedError
from sweephand.telemetry.labels import LostReason

_GIVEN_UP = frozenset({LostReason.SHUTDOWN, LostReason.ERROR, LostReason.STUCK})
"""The ends at which the lease may still be this process's: it is renewed while the work ends, then released."""


class Reign:
    """Carry out one leadership; what happens is specified in `sweephand.dispatcher.lease`."""

    def __init__(
        self,
        candidate: Candidate,
        *,
        turns: Turns,
        clock: Clock,
        observer: ElectionObserver,
        stall_seconds: float,
        ask_fence: AskFence | None,
        abort: Callable[[], NoReturn],
    ) -> None:
        self._candidate = candidate
        self._timings = candidate.timings
        self._turns = turns
        self._clock = clock
        self._observer = observer
        self._ask_fence = ask_fence
        self._abort = abort
        self._log = structlog.get_logger("sweephand.dispatcher.elector").bind(identity=candidate.identity)
        self.since = clock.now()
        self.leadership = Leadership(
            candidate.identity,
            clock=clock,
            trust_seconds=candidate.trust_seconds,
            stall_seconds=stall_seconds,
            signal=turns.signal,
        )
        self._renewal: asyncio.Task[bool] | None = None
        self._renewed_at = clock.moment()
        self._is_unconfirmed = False

    async def run(self, lead: Work) -> LostReason:
        """Run the work until the lead is lost, and return why once the work has ended and the lease is released, if it was."""
        work = asyncio.create_task(_run(lead, leadership=self.leadership), name="leader's work")
        work.add_done_callback(lambda _: self._turns.signal())
        reason = LostReason.ERROR
        try:
            reason = await self._reason_to_end(work)
        finally:
            self.leadership.end()
            work.cancel()
            self._tell_trust(is_unconfirmed=False)
            self._observer.lost(reason)
            self._log.info("leader_lost", reason=str(reason), error=_failure_of(work))
        await self._end_work(work, is_holding=reason in _GIVEN_UP)
        return reason

    async def close(self) -> None:
        """Leave no request behind."""
        renewal, self._renewal = self._renewal, None
        if renewal is not None:
            renewal.cancel()
            await asyncio.wait([renewal])

    async def _reason_to_end(self, work: "asyncio.Task[None]") -> LostReason:
        self._turns.begin()
        while True:
            if self._turns.begin() > self._timings.renew_deadline_seconds:
                self.leadership.beat()  # what stood still together with us is not stuck
                if not await self._is_fence_mine():
                    return LostReason.FROZEN
            if (reason := self._look(work)) is not None:
                return reason
            self._tell_trust(is_unconfirmed=not self.leadership.is_confirmed())
            self._renew_if_due()
            await self._turns.wait(self._seconds_to_next())

    def _look(self, work: "asyncio.Task[None]") -> LostReason | None:
        if self.leadership.was_fenced() or _is_fenced(work):
            return LostReason.FENCED
        if self._is_taken():
            return LostReason.TAKEN
        if self._turns.is_stopping():
            return LostReason.SHUTDOWN
        if work.done():
            return LostReason.ERROR
        if self.leadership.patience_seconds() <= 0:
            return LostReason.STUCK
        if self._candidate.is_refused() and not self.leadership.is_confirmed():
            return LostReason.FORBIDDEN
        return None

    async def _is_fence_mine(self) -> bool:
        if self._ask_fence is None:
            return True
        try:
            async with asyncio.timeout(self._timings.request_seconds):
                return await self._ask_fence()
        except Exception as error:  # noqa: BLE001 where the fence cannot be asked, nothing can be dispatched either
            self._log.warning("fence_unanswered", error=repr(error))
            return True

    def _is_taken(self) -> bool:
        """Whether the last renewal found the lease in other hands."""
        if self._renewal is None or not self._renewal.done():
            return False
        renewal, self._renewal = self._renewal, None
        return not renewal.result()

    def _renew_if_due(self) -> None:
        if self._renewal is None and (self._turns.take_wake() or self._seconds_to_renewal() <= 0):
            self._renewed_at = self._clock.moment()
            self._renewal = asyncio.create_task(self._candidate.renew(), name="lease renewal")
            self._renewal.add_done_callback(lambda _: self._turns.signal())

    def _seconds_to_renewal(self) -> float:
        return self._timings.retry_period_seconds - self._renewed_at.elapsed(until=self._clock.moment())

    def _seconds_to_next(self) -> float:
        """Return how long nothing can need a turn that does not set the signal."""
        seconds = self.leadership.patience_seconds()
        if self._renewal is None:
            seconds = min(seconds, self._seconds_to_renewal())
        if not self._is_unconfirmed:
            seconds = min(seconds, self._candidate.trust_seconds())
        return seconds

    def _tell_trust(self, *, is_unconfirmed: bool) -> None:
        if is_unconfirmed is self._is_unconfirmed:
            return
        self._is_unconfirmed = is_unconfirmed
        self._observer.unconfirmed(is_unconfirmed)
        if is_unconfirmed:
            self._log.warning("lease_unconfirmed", error=str(self._candidate.last_error or "stood still"))
        elif not self.leadership.has_ended():
            self._log.info("lease_confirmed_again")

    async def _end_work(self, work: "asyncio.Task[None]", *, is_holding: bool) -> None:
        """Wait for the cancelled work, at most until others may begin; meanwhile keep the lease if it may be ours."""
        begun_at = self._clock.moment()
        while not work.done():
            self._turns.begin()
            left = self._timings.ending_seconds - begun_at.elapsed(until=self._clock.moment())
            if left <= 0:
                self._log.critical("leader_work_stuck", waited_seconds=self._timings.ending_seconds)
                self._abort()
            is_holding = is_holding and not self._is_taken()
            if is_holding:
                self._renew_if_due()
            if is_holding and self._renewal is None:
                left = min(left, self._seconds_to_renewal())
            await self._turns.wait(left)
        if not work.cancelled() and (error := work.exception()) is not None:
            self._log.debug("leader_work_ended", error=repr(error))
        await self.close()
        if is_holding:
            await self._candidate.release()


async def _run(lead: Work, *, leadership: Leadership) -> None:
    await lead(leadership)


def _is_fenced(work: "asyncio.Task[None]") -> bool:
    if not work.done() or work.cancelled():
        return False
    error = work.exception()
    group = error.subgroup(FencedError) if isinstance(error, BaseExceptionGroup) else None
    return isinstance(error, FencedError) or group is not None


def _failure_of(work: "asyncio.Task[None]") -> str | None:
    """Return what ended the work, if it ended by itself."""
    if not work.done():
        return None
    if work.cancelled():
        return "the work was cancelled"
    error = work.exception()
    return "the work returned" if error is None else repr(error)
