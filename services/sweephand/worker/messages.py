"""Give an attempt the form of a dramatiq message."""

from dramatiq.broker import MessageProxy

from sweephand.worker.attempts import Attempt


class AttemptMessage(MessageProxy):
    """An attempt in the form of a dramatiq message; its only argument is the attempt."""

    def __init__(self, attempt: Attempt) -> None:
        # Without the parent's: there is no message behind the proxy, and every microsecond here is one per job.
        self.failed = False
        self._exception = None
        self.attempt = attempt
        self.queue_name = attempt.queue
        self.actor_name = attempt.job.kind
        self.args = (attempt,)
        self.kwargs = {}
        self.options = {}
        self.message_id = str(attempt.claimed.job_id)
        self.message_timestamp = 0

    def __str__(self) -> str:
        return f"job {self.message_id} ({self.actor_name})"

    def __repr__(self) -> str:
        return f"<AttemptMessage {self}>"

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other
