"""What waits: every dispatcher replica exports it, so that it is still there when nobody leads."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge

from sweephand.model.states import JobState
from sweephand.telemetry.labels import CappedNames


@dataclass(frozen=True, slots=True)
class BacklogMetrics:
    """The gauges of sweeps' rows and queues' jobs, set from one cached query."""

    sweep_backlog_age_seconds: Gauge
    sweep_backlog_rows: Gauge
    queue_backlog_age_seconds: Gauge
    queue_jobs: Gauge
    queue_oldest_running_seconds: Gauge
    queue_stats_last_success_timestamp_seconds: Gauge
    queue_table_bytes: Gauge
    queue_dead_tuples: Gauge
    sweeps: CappedNames

    @classmethod
    def create(cls, registry: CollectorRegistry) -> "BacklogMetrics":
        """Return the backlog's metrics, registered."""
        return cls(
            sweep_backlog_age_seconds=Gauge(
                "sweephand_sweep_backlog_age_seconds",
                "The age of the oldest row that the sweep matches now.",
                ["sweep"],
                registry=registry,
            ),
            sweep_backlog_rows=Gauge(
                "sweephand_sweep_backlog_rows",
                "The rows that the sweep matches now, counted up to a bound.",
                ["sweep"],
                registry=registry,
            ),
            queue_backlog_age_seconds=Gauge(
                "sweephand_queue_backlog_age_seconds",
                "How long the oldest job that could run has waited.",
                ["queue"],
                registry=registry,
            ),
            queue_jobs=Gauge("sweephand_queue_jobs", "Unfinished jobs, by state.", ["queue", "state"], registry=registry),
            queue_oldest_running_seconds=Gauge(
                "sweephand_queue_oldest_running_seconds",
                "How long the longest running job has run.",
                ["queue"],
                registry=registry,
            ),
            queue_stats_last_success_timestamp_seconds=Gauge(
                "sweephand_queue_stats_last_success_timestamp_seconds",
                "When these numbers were last read.",
                registry=registry,
            ),
            queue_table_bytes=Gauge(
                "sweephand_queue_table_bytes", "The size of a table with its indexes.", ["table"], registry=registry
            ),
            queue_dead_tuples=Gauge(
                "sweephand_queue_dead_tuples",
                "Rows of a table that wait for vacuum, as PostgreSQL estimates.",
                ["table"],
                registry=registry,
            ),
            sweeps=CappedNames(),
        )

    def declare_queue(self, queue: str) -> None:
        """Start every series of a queue at 0: the unfinished states, since counting history would cost too much."""
        for state in (JobState.SCHEDULED, JobState.AVAILABLE, JobState.RUNNING, JobState.RETRYABLE):
            self.queue_jobs.labels(queue, state.value)
        self.queue_backlog_age_seconds.labels(queue)
        self.queue_oldest_running_seconds.labels(queue)

    def declare_sweep(self, sweep: str) -> None:
        """Start every series of a sweep at 0."""
        self.show_sweep(sweep, age_seconds=0, rows=0)

    def show_sweep(self, sweep: str, *, age_seconds: float, rows: int) -> None:
        """Show what a sweep matches now; an age of 0 says that nothing waits."""
        label = self.sweeps.label(sweep)
        self.sweep_backlog_age_seconds.labels(label).set(age_seconds)
        self.sweep_backlog_rows.labels(label).set(rows)
