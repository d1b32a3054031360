"""What a dispatcher counts. Moments come from the ledger, so that a new pod tells the truth at its first scrape."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sweephand.model.ticks import MissCause, TickOutcome, TickReason
from sweephand.telemetry.labels import CappedNames, EnqueueErrorReason

_LAG_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


@dataclass(frozen=True, slots=True)
class DispatcherMetrics:
    """The metrics of one dispatcher process. Call `declare` for every sweep before the first scrape."""

    enqueued_total: Counter
    skipped_duplicates_total: Counter
    fenced_total: Counter
    enqueue_errors_total: Counter
    missed_ticks_total: Counter
    last_missed_tick_timestamp_seconds: Gauge
    sweep_last_tick_timestamp_seconds: Gauge
    sweep_next_tick_timestamp_seconds: Gauge
    tick_lag_seconds: Histogram
    ticks_total: Counter
    scan_truncated_total: Counter
    loop_last_success_timestamp_seconds: Gauge
    lane_last_success_timestamp_seconds: Gauge
    clock_offset_seconds: Gauge
    sweeps: CappedNames

    @classmethod
    def create(cls, registry: CollectorRegistry) -> "DispatcherMetrics":
        """Return the dispatcher's metrics, registered."""
        prefix = "sweephand_dispatcher"
        metrics = cls(
            enqueued_total=Counter(f"{prefix}_enqueued", "Jobs that dispatches added.", ["sweep", "reason"], registry=registry),
            skipped_duplicates_total=Counter(
                f"{prefix}_skipped_duplicates",
                "Rows passed over because they have an unfinished job.",
                ["sweep", "reason"],
                registry=registry,
            ),
            fenced_total=Counter(f"{prefix}_fenced", "Dispatches refused because of a later term.", registry=registry),
            enqueue_errors_total=Counter(
                f"{prefix}_enqueue_errors", "Dispatches or rows that failed, by reason.", ["reason"], registry=registry
            ),
            missed_ticks_total=Counter(
                f"{prefix}_missed_ticks",
                "Expected ticks that did not run, by reason.",
                ["sweep", "reason"],
                registry=registry,
            ),
            last_missed_tick_timestamp_seconds=Gauge(
                f"{prefix}_last_missed_tick_timestamp_seconds",
                "When the sweep's last missed tick was planned.",
                ["sweep"],
                registry=registry,
            ),
            sweep_last_tick_timestamp_seconds=Gauge(
                f"{prefix}_sweep_last_tick_timestamp_seconds",
                "When the sweep's last dispatch was planned.",
                ["sweep"],
                registry=registry,
            ),
            sweep_next_tick_timestamp_seconds=Gauge(
                f"{prefix}_sweep_next_tick_timestamp_seconds",
                "When the sweep's next tick is planned.",
                ["sweep"],
                registry=registry,
            ),
            tick_lag_seconds=Histogram(
                f"{prefix}_tick_lag_seconds",
                "From a tick's planned time to the start of its dispatch.",
                buckets=_LAG_BUCKETS,
                registry=registry,
            ),
            ticks_total=Counter(f"{prefix}_ticks", "Ticks, by outcome.", ["sweep", "outcome"], registry=registry),
            scan_truncated_total=Counter(
                f"{prefix}_scan_truncated",
                "Dispatches that reached the scan bound before the limit.",
                ["sweep"],
                registry=registry,
            ),
            loop_last_success_timestamp_seconds=Gauge(
                f"{prefix}_loop_last_success_timestamp_seconds",
                "When the leader's tick loop last came around without an error.",
                registry=registry,
            ),
            lane_last_success_timestamp_seconds=Gauge(
                f"{prefix}_lane_last_success_timestamp_seconds",
                "When a lane beside the ticks (rescue, retention, gauges) last did its round.",
                ["lane"],
                registry=registry,
            ),
            clock_offset_seconds=Gauge(
                f"{prefix}_clock_offset_seconds",
                "This process's clock minus another's.",
                ["against"],
                registry=registry,
            ),
            sweeps=CappedNames(),
        )
        for reason in EnqueueErrorReason:
            metrics.enqueue_errors_total.labels(reason.value)
        return metrics

    def declare(self, sweep: str) -> None:
        """Start every counter of a sweep at 0. Moments stay absent until they are known: 0 would be 1970."""
        label = self.sweeps.label(sweep)
        for reason in TickReason:
            self.enqueued_total.labels(label, reason.value)
            self.skipped_duplicates_total.labels(label, reason.value)
        for missed in MissCause:
            self.missed_ticks_total.labels(label, missed.value)
        for outcome in TickOutcome:
            self.ticks_total.labels(label, outcome.value)
        self.scan_truncated_total.labels(label)

    def count_dispatch(
        self,
        sweep: str,
        *,
        reason: TickReason,
        outcome: TickOutcome,
        enqueued: int,
        skipped_duplicates: int,
        is_scan_truncated: bool = False,
    ) -> None:
        """Count one dispatch, from the report that its log line is written from."""
        label = self.sweeps.label(sweep)
        self.ticks_total.labels(label, outcome.value).inc()
        self.enqueued_total.labels(label, reason.value).inc(enqueued)
        self.skipped_duplicates_total.labels(label, reason.value).inc(skipped_duplicates)
        if is_scan_truncated:
            self.scan_truncated_total.labels(label).inc()

    def count_missed(self, sweep: str, *, reason: MissCause, ticks: int, last_planned_at_seconds: float) -> None:
        """Count ticks that did not run when planned, made up for or not; the moment is the latest one's, in Unix seconds."""
        label = self.sweeps.label(sweep)
        self.missed_ticks_total.labels(label, reason.value).inc(ticks)
        self.last_missed_tick_timestamp_seconds.labels(label).set(last_planned_at_seconds)

    def show_sweep(
        self,
        sweep: str,
        *,
        next_tick_seconds: float | None,
        last_tick_seconds: float | None,
        last_missed_tick_seconds: float | None = None,
    ) -> None:
        """Show a sweep's moments as the ledger has them, in Unix seconds; None: there is none yet."""
        label = self.sweeps.label(sweep)
        moments = (
            (self.sweep_next_tick_timestamp_seconds, next_tick_seconds),
            (self.sweep_last_tick_timestamp_seconds, last_tick_seconds),
            (self.last_missed_tick_timestamp_seconds, last_missed_tick_seconds),
        )
        for gauge, seconds in moments:
            if seconds is not None:
                gauge.labels(label).set(seconds)
