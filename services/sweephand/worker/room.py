"""Say how many jobs may be claimed now: as many as threads are free, and a little ahead where jobs are fast."""

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition, Lock

from sweephand.worker.attempts import Attempt

CLAIM_BATCH = 500
_LOOK_AHEAD_SECONDS = 0.1
_WINDOW_SECONDS = 0.05


class Room:
    """Hold the attempts that have ended until they are written, and count those that have not. Thread-safe.

    The room is the number of threads, and a look-ahead of what ended lately in a tenth of a second, at most
    CLAIM_BATCH: a worker whose jobs take seconds claims none ahead, so they stay for others; one whose jobs take
    microseconds claims many with one statement.

    Threads that run jobs take no lock unless somebody waits for what they bring: with ten threads, a lock taken for
    every job cost more than the job.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lock = Lock()
        self._ended: deque[Attempt] = deque()
        self._taken = 0
        self._reserved = 0
        self._released = 0
        self._waiters: list[_Waiter] = []
        self._wake_at = math.inf
        self._look_ahead = 0
        self._window_ended = 0
        self._window_start = time.monotonic()
        self._is_closed = False

    @property
    def held(self) -> int:
        """How many jobs are claimed and have not ended."""
        return self._reserved - self._count_ended()

    @property
    def waiting(self) -> int:
        """How many ended attempts nobody has taken to write them."""
        return len(self._ended)

    @property
    def waiters(self) -> int:
        """How many threads wait, for room or for what has ended."""
        return len(self._waiters)

    @property
    def is_closed(self) -> bool:
        """Whether claiming has ended for good."""
        return self._is_closed

    def end(self, attempt: Attempt) -> None:
        """Add an attempt that has ended, or was not started."""
        self._ended.append(attempt)
        if self._count_ended() >= self._wake_at:
            with self._lock:
                self._wake_due()

    def end_unstarted(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts that were not started; they say nothing of how fast jobs are."""
        with self._lock:
            self._ended.extend(attempts)
            self._released += len(attempts)
            self._wake_due()

    def take(self, most: int, *, timeout_seconds: float | None = None) -> list[Attempt]:
        """Wait for attempts that have ended and take up to `most`; none after the timeout, or when woken."""
        with self._lock:
            if not self._ended:
                self._wait(self._count_ended() + 1, timeout_seconds, is_for_room=False)
            number = min(most, len(self._ended))
            taken = [self._ended.popleft() for _ in range(number)]
            # After the removal: a count that is too low for a moment only delays a claim.
            self._taken += number
            return taken

    def reserve(self, timeout_seconds: float) -> int:
        """Wait for room and take all of it; return 0 after the timeout, or when claiming has ended.

        With a look-ahead it waits until half of it is free, so that claims stay few and large.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            while not self._is_closed:
                now = time.monotonic()
                self._measure(now)
                room = self._threads + self._look_ahead - self.held
                least = max(1, self._look_ahead // 2)
                if room >= least:
                    self._reserved += room
                    return room
                if now >= deadline:
                    return 0
                self._wait(self._count_ended() + least - room, deadline - now, is_for_room=True)
            return 0

    def give_back(self, count: int) -> None:
        """Return room that was reserved and not filled."""
        if count:
            with self._lock:
                self._reserved -= count
                # Not the one who writes what has ended: it would take the processor from the job that was just claimed.
                self._wake([waiter for waiter in self._waiters if waiter.is_for_room])

    def close(self) -> None:
        """End claiming for good; whoever waits for room gets none."""
        with self._lock:
            self._is_closed = True
            self._wake(self._waiters)

    def wake(self) -> None:
        """Wake whoever waits."""
        with self._lock:
            self._wake(self._waiters)

    def wait_until_empty(self, timeout_seconds: float) -> bool:
        """Wait until every claimed job has ended; return whether that came true in time."""
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            while self.held > 0 and (left := deadline - time.monotonic()) > 0:
                self._wait(self._reserved, left, is_for_room=True)
            return self.held <= 0

    def _count_ended(self) -> int:
        return self._taken + len(self._ended)

    def _wait(self, ended: float, timeout_seconds: float | None, *, is_for_room: bool) -> None:
        """Wait, with the lock held, until so many have ended in all, or whatever else wakes this one."""
        waiter = _Waiter(Condition(self._lock), ended=ended, is_for_room=is_for_room)
        self._waiters.append(waiter)
        self._wake_at = min(waiter.ended for waiter in self._waiters)
        # Looked at again now that it is announced: what ended before the announcement wakes nobody.
        if self._count_ended() < ended:
            waiter.woken.wait(timeout_seconds)
        self._waiters.remove(waiter)
        self._wake_at = min((waiter.ended for waiter in self._waiters), default=math.inf)

    def _wake_due(self) -> None:
        ended = self._count_ended()
        self._wake([waiter for waiter in self._waiters if waiter.ended <= ended])

    def _wake(self, waiters: "Sequence[_Waiter]") -> None:
        for waiter in waiters:
            waiter.woken.notify()

    def _measure(self, now: float) -> None:
        elapsed = now - self._window_start
        if elapsed >= _WINDOW_SECONDS:
            ended = self._count_ended() - self._released
            ahead = int((ended - self._window_ended) / elapsed * _LOOK_AHEAD_SECONDS)
            self._look_ahead = min(CLAIM_BATCH, ahead)
            self._window_ended = ended
            self._window_start = now


@dataclass(frozen=True, slots=True, eq=False)
class _Waiter:
    """Somebody who waits until `ended` attempts have ended in all; for room, or for what ended itself."""

    woken: Condition
    ended: float
    is_for_room: bool
