"""Count what a worker did, once for each batch that was written."""

from collections import Counter
from collections.abc import Sequence

import structlog

from sweephand.telemetry import WorkerMetrics
from sweephand.worker.attempts import Attempt
from sweephand.worker.job_log import JobLog


class WorkerCounts:
    """Turn written attempts into metrics and the log's summary. For one thread."""

    def __init__(self, metrics: WorkerMetrics, *, log: JobLog) -> None:
        self._metrics = metrics
        self._log = log

    def count(self, ended: Sequence[Attempt], *, stale: Sequence[int]) -> None:
        """Count attempts whose outcome was written; those of `stale` jobs changed nothing and count as that."""
        if stale:
            self._metrics.stale_finishes_total.inc(len(stale))
            structlog.get_logger().warning("stale_finishes", jobs=len(stale), first_job_id=stale[0])
        passed_over = frozenset(stale)
        by_kind: dict[tuple[str, str], list[Attempt]] = {}
        for attempt in ended:
            if attempt.claimed.job_id not in passed_over:
                by_kind.setdefault((attempt.queue, attempt.job.kind), []).append(attempt)
        for (queue, kind), attempts in by_kind.items():
            self._count(queue, kind, attempts)

    def _count(self, queue: str, kind: str, attempts: Sequence[Attempt]) -> None:
        self._metrics.count_attempts(
            queue,
            kind=kind,
            outcomes=Counter([attempt.finished.outcome for attempt in attempts if attempt.finished is not None]),
            durations_seconds=[attempt.ended - attempt.started for attempt in attempts],
            # What the database counted up to the claim, and the time since.
            waits_seconds=[
                max(0.0, attempt.claimed.waited_seconds + attempt.started - attempt.claimed_monotonic) for attempt in attempts
            ],
        )
        self._log.count_untold(kind, jobs=sum(not attempt.is_logged for attempt in attempts))
        for attempt in attempts:
            if attempt.discard_reason is not None:
                self._metrics.count_discard(queue, kind=kind, reason=attempt.discard_reason)
