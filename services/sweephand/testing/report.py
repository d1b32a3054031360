"""Say what became of jobs that ran inside a test."""

from dataclasses import dataclass

from sweephand.model.outcomes import AttemptOutcome


@dataclass(frozen=True, slots=True)
class InlineAttempt:
    """Be one attempt that has ended; `error` is what the function raised, a signal such as Snooze too."""

    job_id: int
    kind: str
    attempt: int
    outcome: AttemptOutcome
    error: Exception | None


@dataclass(frozen=True, slots=True)
class DrainReport:
    """Hold the attempts of one `drain`, in the order in which they ran."""

    attempts: tuple[InlineAttempt, ...]

    @property
    def completed(self) -> int:
        """Return how many attempts completed their job."""
        return self.count(AttemptOutcome.COMPLETED)

    @property
    def errors(self) -> tuple[Exception, ...]:
        """Return what failed attempts raised, in order."""
        return tuple(attempt.error for attempt in self.attempts if attempt.error is not None and _has_failed(attempt))

    def count(self, outcome: AttemptOutcome) -> int:
        """Return how many attempts ended like this."""
        return sum(attempt.outcome is outcome for attempt in self.attempts)


def _has_failed(attempt: InlineAttempt) -> bool:
    return attempt.outcome in {AttemptOutcome.RETRIED, AttemptOutcome.DISCARDED}
