"""Hand claimed jobs to dramatiq's threads through a queue written in C."""

from collections import deque
from queue import Empty, PriorityQueue, SimpleQueue
from typing import TYPE_CHECKING

from sweephand.worker.messages import AttemptMessage

if TYPE_CHECKING:
    from dramatiq.broker import MessageProxy
    from dramatiq.worker import _WorkQueueItem


class JobQueue(PriorityQueue["_WorkQueueItem"]):
    """Stand in for the priority queue of a dramatiq Worker: first in, first out, and several times as fast.

    Queues are the priorities here, so there is nothing to sort. Thread-safe.
    """

    def __init__(self) -> None:
        super().__init__()
        self._incoming: deque[_WorkQueueItem] = deque()
        self._items: SimpleQueue[_WorkQueueItem | None] = SimpleQueue()

    def put(self, item: "_WorkQueueItem", block: bool = True, timeout: float | None = None) -> None:  # noqa: ARG002, FBT001, FBT002 - the queue's interface
        """Add a message; never blocks, and wakes nobody before `hand_out`."""
        self._incoming.append(item)

    def hand_out(self) -> None:
        """Let threads take what was put. Woken for each message as it came, they would go back to sleep after each."""
        while self._incoming:
            try:
                self._items.put(self._incoming.popleft())
            except IndexError:  # another consumer was faster
                return

    def get(self, block: bool = True, timeout: float | None = None) -> "_WorkQueueItem":  # noqa: FBT001, FBT002 - the queue's interface
        """Take a message. Raises Empty after the timeout, or when woken."""
        item = self._items.get(block=block, timeout=timeout)
        if item is None:
            raise Empty
        return item

    def qsize(self) -> int:
        """Return how many messages wait."""
        return self._items.qsize() + len(self._incoming)

    def task_done(self) -> None:
        """Do nothing: who waits for the end of jobs waits for the room to be empty."""

    def take_all(self) -> "list[MessageProxy]":
        """Take every message that no thread has taken yet."""
        self.hand_out()
        taken: list[MessageProxy] = []
        while True:
            try:
                taken.append(self.get(block=False).message)
            except Empty:
                if not self.qsize():
                    return taken

    def take_waiting(self, *, claimed_before: float) -> "list[MessageProxy]":
        """Take every message, if the oldest was claimed before this reading of the monotonic clock; else none."""
        try:
            oldest = self.get(block=False)
        except Empty:
            return []
        if _claimed_monotonic(oldest.message) >= claimed_before:
            self._items.put(oldest)
            return []
        return [oldest.message, *self.take_all()]

    def wake(self, threads: int) -> None:
        """Make this many waiting threads look up, so that they see that they should end."""
        for _ in range(threads):
            self._items.put(None)


def _claimed_monotonic(message: "MessageProxy") -> float:
    return message.attempt.claimed_monotonic if isinstance(message, AttemptMessage) else float("inf")
