"""One candidate's requests for the lease: gain it, renew it, release it, and know how long to trust the last answer."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import structlog

from sweephand.dispatcher.elector import ElectionObserver
from sweephand.dispatcher.lease import Clock, LeaseView, Moment, Standing
from sweephand.model.lease import (
    LeaseConflictError,
    LeaseError,
    LeaseFailure,
    LeaseForbiddenError,
    LeaseMissingError,
    LeaseStore,
    LeaseTimings,
    LeaseUnavailableError,
    StoredLease,
)
from sweephand.telemetry.labels import AcquiredHow

HURRY_SECONDS = 0.5
"""How long a stopping process still waits for the answer to what it asked before."""

_GAINED_HOW = {
    Standing.MISSING: AcquiredHow.CREATED,
    Standing.RELEASED: AcquiredHow.RELEASED,
    Standing.EXPIRED: AcquiredHow.EXPIRED,
    Standing.MINE: AcquiredHow.RESUMED,
}


class Candidate:
    """The lease as one process deals with it. One request at a time; failures are noted, counted and logged, not raised."""

    def __init__(
        self, store: LeaseStore, *, identity: str, timings: LeaseTimings, clock: Clock, observer: ElectionObserver
    ) -> None:
        self.identity = identity
        self.timings = timings
        self.view = LeaseView(identity, timings=timings)
        self.last_error: LeaseError | None = None
        self._store = store
        self._clock = clock
        self._observer = observer
        self._log = structlog.get_logger("sweephand.dispatcher.elector").bind(identity=identity)
        self._confirmed_at: Moment | None = None
        self._answering_since: Moment | None = None
        self._is_hurried = False
        self._timeout: asyncio.Timeout | None = None
        self._logged_error: str | None = None
        # A watch tells of our own writes too, and late: each of them would cause the next one.
        self._own_versions: deque[str] = deque(maxlen=16)

    def trust_seconds(self) -> float:
        """Return how long the last write may still be counted on; not above 0 when it may not."""
        if self._confirmed_at is None:
            return 0.0
        return self.timings.renew_deadline_seconds - self._confirmed_at.elapsed(until=self._clock.moment())

    def is_refused(self) -> bool:
        """Whether the last answer was that this process may not: then it must not go on unconfirmed."""
        return isinstance(self.last_error, LeaseForbiddenError)

    def wrote(self, version: str) -> bool:
        """Whether this version of the record is this candidate's own."""
        return version in self._own_versions

    def hurry(self) -> None:
        """Gain nothing any more, and wait for the answer that is due not much longer."""
        self._is_hurried = True
        if self._timeout is not None:
            soon = asyncio.get_running_loop().time() + HURRY_SECONDS
            due = self._timeout.when()
            self._timeout.reschedule(soon if due is None else min(due, soon))

    def forget(self) -> None:
        """Trust the last write no more: this candidate leads no longer."""
        self._confirmed_at = None

    async def gain(self) -> AcquiredHow | None:
        """Take the lease if it is there to take, and return how, or None: this candidate follows."""
        with self._noting():
            standing = await self._look()
            if standing in (Standing.HELD, Standing.DELETED) or (standing is Standing.EXPIRED and self._is_leader_given_time()):
                self._answered()
            elif not self._is_hurried:
                try:
                    await self._hold(standing)
                except LeaseConflictError:
                    await self._look()  # whoever was quicker is known from now on, should the lease be deleted next
                    raise
                return _GAINED_HOW[standing]
        return None

    async def renew(self) -> bool:
        """Renew the lease. Return False only if it is certain that it is no longer this candidate's."""
        with self._noting():
            standing = Standing.MINE
            # A deleted lease may be made anew by another meanwhile, so there can be a second conflict.
            for _ in range(3):
                if standing in (Standing.RELEASED, Standing.EXPIRED, Standing.HELD):
                    return False
                if standing is Standing.DELETED and self.trust_seconds() <= 0:
                    return True
                try:
                    await self._hold(standing)
                except (LeaseConflictError, LeaseMissingError) as error:
                    self._note(error)
                    standing = await self._look()
                else:
                    return True
        return True

    async def release(self) -> None:
        """Let others have the lease at once, as long as it is certainly this candidate's."""
        with self._noting():
            for _ in range(2):
                stored = self.view.stored
                if stored is None or self.trust_seconds() <= 0:
                    return
                try:
                    await self._request(self._store.replace(stored, record=self.view.releasing(self._clock.now())))
                except LeaseConflictError:
                    # A renewal that was given up may have landed: then it is still ours, in another version.
                    if await self._look() is not Standing.MINE:
                        return
                else:
                    self._log.info("lease_released")
                    return

    def _is_leader_given_time(self) -> bool:
        """Whether the store answers again only since a moment: an unconfirmed leader may be about to renew."""
        now = self._clock.moment()
        since = self._answering_since or now
        return since.elapsed(until=now) < self.timings.request_seconds + self.timings.retry_period_seconds / 2

    async def _look(self) -> Standing:
        try:
            stored = await self._request(self._store.get())
        except LeaseMissingError:
            self.view.miss(at=self._clock.moment())
        else:
            self.view.observe(stored, at=self._clock.moment())
        if self._answering_since is None:
            self._answering_since = self._clock.moment()
        return self.view.standing(self._clock.moment())

    async def _hold(self, standing: Standing) -> None:
        stored = self.view.stored
        begun_at = self._clock.moment()
        now = self._clock.now()
        if stored is None or standing in (Standing.MISSING, Standing.DELETED):
            written = await self._request(self._store.create(self.view.founding(now)))
        else:
            written = await self._request(self._store.replace(stored, record=self.view.holding(now)))
        self.view.observe(written, at=self._clock.moment())
        self._own_versions.append(written.version)
        self._confirmed_at = begun_at
        self._answered()

    async def _request(self, answer: Awaitable[StoredLease]) -> StoredLease:
        trust_seconds = self.trust_seconds()
        seconds = self.timings.request_seconds if trust_seconds <= 0 else min(self.timings.request_seconds, trust_seconds)
        begun_at = self._clock.moment()
        try:
            async with asyncio.timeout(seconds) as self._timeout:
                return await answer
        except TimeoutError:
            raise LeaseUnavailableError("no answer in time", failure=LeaseFailure.TIMEOUT) from None
        finally:
            self._timeout = None
            self._observer.renew_seconds(begun_at.elapsed(until=self._clock.moment()))

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 a candidate contends for ever, and a leader goes on; it is noted
            self._note(error)

    def _note(self, error: Exception) -> None:
        if not isinstance(error, LeaseError):
            self._log.error("lease_request_broke", exc_info=error)
            error = LeaseUnavailableError(repr(error), failure=LeaseFailure.OTHER)
        self._observer.renew_error(error.failure)
        self.last_error = error
        if isinstance(error, LeaseConflictError | LeaseMissingError):
            self._log.debug("lease_race_lost", error=str(error))
            return
        self._answering_since = None
        if str(error) != self._logged_error:
            # Once per streak: it is tried again every few seconds.
            self._logged_error = str(error)
            if isinstance(error, LeaseForbiddenError):
                self._log.error(
                    "lease_forbidden", verb=error.verb, resource=error.resource, name=error.name, subject=error.subject
                )
            else:
                self._log.warning("lease_request_failed", reason=str(error.failure), error=str(error))

    def _answered(self) -> None:
        self.last_error = None
        if self._logged_error is not None:
            self._logged_error = None
            self._log.info("lease_answers_again")
