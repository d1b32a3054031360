"""Be dramatiq's broker: its consumers claim from PostgreSQL, its acknowledgements go to the finisher.

dramatiq gives the threads, the actors and the middleware. Its messages are our attempts; its retries, delay queues and
acknowledgements one by one are not used: the outcome of an attempt is one row of the finisher's next statement.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from dramatiq.broker import Broker, Consumer, MessageProxy
from dramatiq.message import Message
from dramatiq.middleware import Middleware, MiddlewareError

from sweephand.worker.attempts import Attempt
from sweephand.worker.claimer import Claimer
from sweephand.worker.finisher import Finisher
from sweephand.worker.job_queue import JobQueue
from sweephand.worker.messages import AttemptMessage
from sweephand.worker.wake import Wake

# How long a job may wait here for a thread before it goes back to the database.
_MOST_AHEAD_SECONDS = 1.0

Hook: TypeAlias = Callable[..., None]


class JobConsumer(Consumer):
    """Claim the jobs of one queue for dramatiq's consumer thread of that queue."""

    def __init__(
        self,
        queue: str,
        *,
        claimer: Claimer,
        finisher: Finisher,
        job_queue: JobQueue,
        wake: Wake,
        poll_seconds: float,
    ) -> None:
        self._queue = queue
        self._job_queue = job_queue
        self._claimer = claimer
        self._finisher = finisher
        self._wake = wake
        self._poll_seconds = poll_seconds
        self._claimed: deque[Attempt] = deque()

    def __next__(self) -> MessageProxy | None:
        """Return the next claimed job; None, within about a poll interval, when there is none."""
        if not self._claimed:
            self._job_queue.hand_out()
            # Taken before the claim: a notification that comes while it runs must not be lost.
            self._wake.take(self._poll_seconds if self._claimer.has_drained(self._queue) else 0)
            self._claimed.extend(self._claimer.claim(self._queue))
        try:
            return AttemptMessage(self._claimed.popleft())
        except IndexError:
            if not self._claimer.has_drained(self._queue):
                self._give_back_waiting()
            return None

    def _give_back_waiting(self) -> None:
        """Give back what was claimed ahead and waits behind jobs that turned out to be slow: others may be free."""
        waiting = self._job_queue.take_waiting(claimed_before=time.monotonic() - _MOST_AHEAD_SECONDS)
        self.requeue(waiting)

    def take_back(self) -> list[Attempt]:
        """Take what is claimed and not yet handed to a thread."""
        taken: list[Attempt] = []
        while self._claimed:
            try:
                taken.append(self._claimed.popleft())
            except IndexError:
                break
        return taken

    def ack(self, message: MessageProxy) -> None:
        """Pass on how the attempt ended; it says so itself."""
        if isinstance(message, AttemptMessage):
            self._finisher.add(message.attempt)

    nack = ack

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Give back jobs that no thread has taken."""
        self._finisher.release([message.attempt for message in messages if isinstance(message, AttemptMessage)])


class JobBroker(Broker):
    """Know the actors and the queues of one worker process."""

    def __init__(
        self, *, make_consumer: Callable[[str], JobConsumer], middleware: list[Middleware], queues: Iterable[str]
    ) -> None:
        self._hooks: dict[str, tuple[Hook, ...]] = {}
        super().__init__(middleware=middleware)
        self._make_consumer = make_consumer
        self.consumers: list[JobConsumer] = []
        for queue in queues:
            self.declare_queue(queue)

    def declare_queue(self, queue_name: str) -> None:
        """Make a queue known; the worker then starts a consumer for it."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = None
            self.emit_after("declare_queue", queue_name)

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30000) -> Consumer:  # noqa: ARG002 - dramatiq's interface; the room says how many
        """Return a consumer of the queue."""
        consumer = self._make_consumer(queue_name)
        self.consumers.append(consumer)
        return consumer

    def enqueue(self, message: Message[object], *, delay: int | None = None) -> Message[object]:
        """Refuse: a job is enqueued with sweephand.enqueue, in the caller's transaction."""
        raise NotImplementedError(f"{message.actor_name}: enqueue with sweephand.enqueue(session, job, ...) or job.send(...)")

    def add_middleware(
        self,
        middleware: Middleware,
        *,
        before: type[Middleware] | None = None,
        after: type[Middleware] | None = None,
    ) -> None:
        """Add a middleware, as dramatiq does."""
        self._hooks.clear()
        super().add_middleware(middleware, before=before, after=after)
        self._hooks.clear()

    def emit_before(self, signal: str, *args: object, **kwargs: object) -> None:
        """Call the hooks of a signal; dramatiq's own calls every middleware's empty ones too, six times for each job."""
        for hook in self._hooks_of(f"before_{signal}"):
            try:
                hook(self, *args, **kwargs)
            except MiddlewareError:
                raise
            except Exception:
                self.logger.critical("Unexpected failure in before_%s of %r.", signal, hook, exc_info=True)

    def emit_after(self, signal: str, *args: object, **kwargs: object) -> None:
        """Call the hooks of a signal, the last middleware's first."""
        for hook in reversed(self._hooks_of(f"after_{signal}")):
            try:
                hook(self, *args, **kwargs)
            except Exception:
                self.logger.critical("Unexpected failure in after_%s of %r.", signal, hook, exc_info=True)

    def _hooks_of(self, name: str) -> tuple[Hook, ...]:
        hooks = self._hooks.get(name)
        if hooks is None:
            empty = getattr(Middleware, name)
            hooks = tuple(
                getattr(middleware, name) for middleware in self.middleware if getattr(type(middleware), name) is not empty
            )
            self._hooks[name] = hooks
        return hooks
