"""Say how many jobs may be claimed now: as many as threads are free, and a little ahead where jobs are fast."""

import time
from threading import Condition

CLAIM_BATCH = 200
_LOOK_AHEAD_SECONDS = 0.1
_WINDOW_SECONDS = 0.05


class Room:
    """Count the jobs that are claimed and not yet done, and let consumers wait for room. Thread-safe.

    The room is the number of threads, and a look-ahead of what ended lately in a tenth of a second, at most
    CLAIM_BATCH: a worker whose jobs take seconds claims none ahead, so they stay for others; one whose jobs take
    microseconds claims many with one statement.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._changed = Condition()
        self._held = 0
        self._look_ahead = 0
        self._ended_in_window = 0
        self._window_start = time.monotonic()
        self._wake_at = -1
        self._is_closed = False

    @property
    def held(self) -> int:
        """How many jobs are claimed and not yet done."""
        return self._held

    @property
    def is_closed(self) -> bool:
        """Whether claiming has ended for good."""
        return self._is_closed

    def reserve(self, timeout_seconds: float) -> int:
        """Wait for room and take all of it; return 0 after the timeout, or when claiming has ended.

        With a look-ahead it waits until half of it is free, so that claims stay few and large.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._changed:
            while not self._is_closed:
                now = time.monotonic()
                self._measure(now)
                room = self._threads + self._look_ahead - self._held
                least = max(1, self._look_ahead // 2)
                if room >= least:
                    self._held += room
                    return room
                if now >= deadline:
                    return 0
                self._wake_at = self._threads + self._look_ahead - least
                self._changed.wait(deadline - now)
                self._wake_at = -1
            return 0

    def give_back(self, count: int) -> None:
        """Return room that was reserved and not filled, or whose jobs were handed back."""
        if count:
            with self._changed:
                self._held -= count
                self._changed.notify_all()

    def ended(self) -> None:
        """Count a job that is done."""
        with self._changed:
            self._held -= 1
            self._ended_in_window += 1
            if self._held <= self._wake_at:
                self._changed.notify_all()

    def close(self) -> None:
        """End claiming for good; whoever waits for room gets none."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wait_until_empty(self, timeout_seconds: float) -> bool:
        """Wait until every claimed job is done or handed back; return whether that came true in time."""
        with self._changed:
            self._wake_at = 0
            return self._changed.wait_for(lambda: self._held == 0, timeout_seconds)

    def _measure(self, now: float) -> None:
        elapsed = now - self._window_start
        if elapsed >= _WINDOW_SECONDS:
            ahead = int(self._ended_in_window / elapsed * _LOOK_AHEAD_SECONDS)
            self._look_ahead = min(CLAIM_BATCH, ahead)
            self._ended_in_window = 0
            self._window_start = now
