"""Wake a thread that waits for something to do."""

from queue import Empty, SimpleQueue


class Wake:
    """Be an Event whose one waiter takes the signal; from a queue written in C, as it lies between a commit and the job's start.

    Any thread may set it.
    """

    def __init__(self) -> None:
        self._signals: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Signal; several signals that nobody has taken are one, or very few."""
        if self._signals.empty():
            self._signals.put(None)

    def take(self, timeout_seconds: float) -> bool:
        """Wait for a signal and take it, so that any that comes from now on is a new one; return whether there was one."""
        try:
            self._signals.get(timeout=timeout_seconds)
        except Empty:
            return False
        return True
