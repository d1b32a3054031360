"""Count what a worker did, once for each batch that was written."""

from collections import Counter
from collections.abc import Sequence

import structlog

from sweephand.model.outcomes import AttemptOutcome
from sweephand.telemetry import WorkerMetrics
from sweephand.worker.attempts import Attempt


class WorkerCounts:
    """Turn written attempts into metrics. For one thread."""

    def __init__(self, metrics: WorkerMetrics) -> None:
        self._metrics = metrics

    def count(self, ended: Sequence[Attempt], *, stale: Sequence[int]) -> None:
        """Count attempts whose outcome was written; those of `stale` jobs changed nothing and count as that."""
        metrics, kinds = self._metrics, self._metrics.kinds
        if stale:
            metrics.stale_finishes_total.inc(len(stale))
            structlog.get_logger().warning("stale_finishes", jobs=len(stale), first_job_id=stale[0])
        passed_over = frozenset(stale)
        outcomes: Counter[tuple[str, str, AttemptOutcome]] = Counter()
        for attempt in ended:
            finished = attempt.finished
            if finished is None or finished.job_id in passed_over:
                continue
            outcomes[attempt.queue, attempt.job.kind, finished.outcome] += 1
            metrics.job_duration_seconds.labels(attempt.queue, kinds.label(attempt.job.kind)).observe(
                finished.ended - finished.started
            )
            metrics.queue_wait_seconds.labels(attempt.queue).observe(
                max(0.0, attempt.claimed.waited_seconds + finished.started - attempt.claimed_monotonic)
            )
            if attempt.discard_reason is not None:
                metrics.count_discard(attempt.queue, kind=attempt.job.kind, reason=attempt.discard_reason)
        for (queue, kind, outcome), number in outcomes.items():
            metrics.jobs_total.labels(queue, kinds.label(kind), outcome.value).inc(number)
