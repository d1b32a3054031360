"""What a worker counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sweephand.model.outcomes import AttemptOutcome
from sweephand.telemetry.batch_histogram import BatchHistogram
from sweephand.telemetry.labels import CappedNames, DiscardReason

# From a no-op to the longest job that a worker's grace lets finish and beyond.
_DURATION_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600, 1800)
_WAIT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_DRAIN_OUTCOMES = ("drained", "interrupted")


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """The metrics of one worker process. Call `declare` for every kind it serves before the first scrape."""

    jobs_total: Counter
    job_duration_seconds: BatchHistogram
    queue_wait_seconds: BatchHistogram
    discarded_total: Counter
    rescued_total: Counter
    stale_finishes_total: Counter
    in_progress: Gauge
    slots: Gauge
    heartbeat_timestamp_seconds: Gauge
    drain_seconds: Histogram
    listener_connected: Gauge
    notify_reconnects_total: Counter
    kinds: CappedNames

    @classmethod
    def create(cls, registry: CollectorRegistry) -> "WorkerMetrics":
        """Return the worker's metrics, registered."""
        prefix = "sweephand_worker"
        metrics = cls(
            jobs_total=Counter(
                f"{prefix}_jobs", "Attempts that ended, by outcome.", ["queue", "kind", "outcome"], registry=registry
            ),
            job_duration_seconds=BatchHistogram(
                f"{prefix}_job_duration_seconds",
                "From the start of an attempt to its end.",
                ["queue", "kind"],
                buckets=_DURATION_BUCKETS,
                registry=registry,
            ),
            queue_wait_seconds=BatchHistogram(
                f"{prefix}_queue_wait_seconds",
                "From the moment a job could run to the start of the attempt.",
                ["queue"],
                buckets=_WAIT_BUCKETS,
                registry=registry,
            ),
            discarded_total=Counter(
                f"{prefix}_discarded", "Jobs given up, by reason.", ["queue", "kind", "reason"], registry=registry
            ),
            rescued_total=Counter(
                f"{prefix}_rescued", "Jobs taken back from a worker that fell silent.", ["queue"], registry=registry
            ),
            stale_finishes_total=Counter(
                f"{prefix}_stale_finishes",
                "Results refused because the attempt had been taken away meanwhile.",
                registry=registry,
            ),
            in_progress=Gauge(f"{prefix}_in_progress", "Jobs that run now.", ["queue"], registry=registry),
            slots=Gauge(f"{prefix}_slots", "Jobs that can run at once.", registry=registry),
            heartbeat_timestamp_seconds=Gauge(
                f"{prefix}_heartbeat_timestamp_seconds", "When the last heartbeat was stored.", registry=registry
            ),
            drain_seconds=Histogram(
                f"{prefix}_drain_seconds",
                "From SIGTERM to the last job's end.",
                ["outcome"],
                buckets=(0.1, 0.5, 1, 5, 10, 20, 30, 60, 120, 300, 900),
                registry=registry,
            ),
            listener_connected=Gauge(f"{prefix}_listener_connected", "1 while notifications are listened to.", registry=registry),
            notify_reconnects_total=Counter(
                f"{prefix}_notify_reconnects", "Times that the listening connection was made anew.", registry=registry
            ),
            kinds=CappedNames(),
        )
        for outcome in _DRAIN_OUTCOMES:
            metrics.drain_seconds.labels(outcome)
        return metrics

    def declare(self, queue: str, *, kind: str) -> None:
        """Start every series of a queue and a kind at 0, so that the first event is an increase."""
        label = self.kinds.label(kind)
        for outcome in AttemptOutcome:
            self.jobs_total.labels(queue, label, outcome.value)
        for reason in DiscardReason:
            self.discarded_total.labels(queue, label, reason.value)
        self.job_duration_seconds.declare(queue, label)
        self.queue_wait_seconds.declare(queue)
        self.rescued_total.labels(queue)
        self.in_progress.labels(queue)

    def count_attempts(
        self,
        queue: str,
        *,
        kind: str,
        outcomes: Mapping[AttemptOutcome, int],
        durations_seconds: Sequence[float],
        waits_seconds: Sequence[float],
    ) -> None:
        """Count attempts that ended: how, how long they took, and how long their jobs had waited."""
        label = self.kinds.label(kind)
        for outcome, number in outcomes.items():
            self.jobs_total.labels(queue, label, outcome.value).inc(number)
        self.job_duration_seconds.observe_many(durations_seconds, queue, label)
        self.queue_wait_seconds.observe_many(waits_seconds, queue)

    def count_discard(self, queue: str, *, kind: str, reason: DiscardReason) -> None:
        """Count a job that was given up."""
        self.discarded_total.labels(queue, self.kinds.label(kind), reason.value).inc()
