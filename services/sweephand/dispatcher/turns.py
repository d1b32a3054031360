"""One loop's turns: what may happen only sets a signal, and each turn looks at everything anew."""

import asyncio
from collections.abc import Callable

from sweephand.dispatcher.lease import Clock

_LEAST_SECONDS = 0.001


class Turns:
    """The signal of one elector's loop, and what was asked of it since the last turn."""

    def __init__(self, *, clock: Clock, is_own_write: Callable[[str], bool]) -> None:
        self._clock = clock
        self._is_own_write = is_own_write
        self._signal = asyncio.Event()
        self._is_stopping = False
        self._is_woken = False
        self._woken_by: str | None = None
        self._turned_at = clock.moment()
        self._alive_at = self._turned_at

    def signal(self) -> None:
        """Let the next turn begin now."""
        self._signal.set()

    def stop(self) -> None:
        """Ask for the graceful end."""
        self._is_stopping = True
        self._signal.set()

    def is_stopping(self) -> bool:
        """Whether the graceful end was asked for."""
        return self._is_stopping

    def wake(self, version: str | None) -> None:
        """Ask for a look at the record, unless the change to this version was our own write."""
        if version is None or not self._is_own_write(version):
            self._is_woken = True
            self._woken_by = version
            self._signal.set()

    def take_wake(self) -> bool:
        """Return once whether a look was asked for. Only now is it known whether a write in flight was our own."""
        is_woken, version = self._is_woken, self._woken_by
        self._is_woken = False
        return is_woken and (version is None or not self._is_own_write(version))

    def begin(self) -> float:
        """Mark the begin of a turn, and return the seconds since the last one began."""
        now = self._clock.moment()
        seconds = self._turned_at.elapsed(until=now)
        self._turned_at = self._alive_at = now
        return seconds

    def still_seconds(self) -> float:
        """Return the seconds since the loop last did anything. May be called from any thread."""
        return self._alive_at.elapsed(until=self._clock.moment())

    async def wait(self, seconds: float) -> None:
        """Wait for the signal, at most so long."""
        self._alive_at = self._clock.moment()
        try:
            # A wait that is shorter than a clock can tell would be followed by itself.
            async with asyncio.timeout(max(seconds, _LEAST_SECONDS)):
                await self._signal.wait()
        except TimeoutError:
            pass
        self._signal.clear()
