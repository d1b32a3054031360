"""Interrupt a running attempt from outside: its time limit, a cancellation, the end of the process.

dramatiq's TimeLimit raises outside of its lock, so that its exception can hit the job that the thread runs next, and a
thread that ends between two bytecodes is killed by it. Here the attempt is taken in one
atomic step, by its thread or by who interrupts it: an exception is raised only into the attempt that it is meant for, and
has arrived when `leave` is over. It cannot break a
blocking call in C: statements and requests need time limits of their own.
"""

import time
from threading import Event, Thread, get_ident

from dramatiq.middleware import Shutdown, TimeLimitExceeded
from dramatiq.threading import Interrupt, raise_thread_exception

from sweephand.worker.attempts import Attempt, Interruption

_CHECK_SECONDS = 0.25
_ARRIVAL_CHECKS = 1_000


class JobCancelled(Interrupt):
    """Raised inside a running job that somebody cancelled. A job may catch it to clean up, and should raise it on."""


_EXCEPTIONS: dict[Interruption, type[Interrupt]] = {
    Interruption.TIMED_OUT: TimeLimitExceeded,
    Interruption.CANCELLED: JobCancelled,
    Interruption.SHUTDOWN: Shutdown,
}


class Interrupts:
    """Know which attempt runs in which thread, and interrupt those past their time limit. Thread-safe."""

    def __init__(self) -> None:
        self._running: dict[int, Attempt] = {}
        # Whoever takes the attempt out of here, its own thread or one that interrupts it, has the say. One atomic step
        # instead of a lock: an exception that arrives inside `with lock` could leave the lock taken for ever.
        self._interruptible: dict[Attempt, bool] = {}
        self._stopped = Event()
        self._thread = Thread(target=self._watch, name="time-limits", daemon=True)

    def start(self) -> None:
        """Start watching the time limits."""
        self._thread.start()

    def stop(self) -> None:
        """Stop watching."""
        self._stopped.set()

    @property
    def is_alive(self) -> bool:
        """Whether time limits are watched."""
        return self._thread.is_alive()

    def running(self) -> list[Attempt]:
        """Return the attempts that run now, those that were interrupted and still clean up too."""
        return list(self._running.copy().values())

    def enter(self, attempt: Attempt) -> None:
        """Say that the calling thread begins to run the attempt, whose `started` is set."""
        attempt.deadline = attempt.started + attempt.claimed.timeout_seconds
        attempt.thread_id = thread_id = get_ident()
        self._running[thread_id] = attempt
        self._interruptible[attempt] = True

    def leave(self, attempt: Attempt) -> None:
        """Say that the thread is done with the attempt; an interruption on its way is raised here at the latest."""
        if not self._interruptible.pop(attempt, False):
            while not attempt.is_raised:
                pass
            # CPython raises it at one of the next jumps backwards, unless it has come already.
            for _ in range(_ARRIVAL_CHECKS):
                pass

    def forget(self, attempt: Attempt) -> None:
        """Say that nothing more comes of the attempt; to be called after `leave`, whether that raised or not."""
        self._interruptible.pop(attempt, None)
        self._running.pop(attempt.thread_id, None)

    def interrupt(self, attempt: Attempt, *, why: Interruption, reason: str = "") -> bool:
        """Interrupt the attempt if it still runs and was not interrupted before; return whether it was."""
        if not self._interruptible.pop(attempt, False):
            return False
        attempt.interruption, attempt.reason = why, reason
        raise_thread_exception(attempt.thread_id, _EXCEPTIONS[why])  # type: ignore[no-untyped-call]  # dramatiq leaves it unannotated
        attempt.is_raised = True
        return True

    def interrupt_all(self, why: Interruption) -> list[Attempt]:
        """Interrupt whatever runs; return the attempts that were interrupted now."""
        return [attempt for attempt in self.running() if self.interrupt(attempt, why=why)]

    def _watch(self) -> None:
        while not self._stopped.wait(_CHECK_SECONDS):
            now = time.monotonic()
            for attempt in self.running():
                if attempt.deadline <= now:
                    self.interrupt(attempt, why=Interruption.TIMED_OUT)
