"""Tell what the tick loop did: a log line and the metrics, from the one report of each step."""

from datetime import timedelta

import structlog

from sweephand.model.ticks import DueTick, MissCause, SkippedTick, Step, TickOutcome
from sweephand.postgres.dispatch import DispatchReport
from sweephand.telemetry import DispatcherMetrics, EnqueueErrorReason

_SHORT_INTERVAL = timedelta(seconds=60)


class TickReporter:
    """Log and count for one dispatcher process."""

    def __init__(self, metrics: DispatcherMetrics) -> None:
        self._metrics = metrics
        self._log = structlog.get_logger("sweephand.dispatcher")

    def dispatched(self, report: DispatchReport, step: Step) -> None:
        """Tell of a dispatch that was committed; one that found nothing is told at debug."""
        due = report.due
        self._skipped(report.sweep, step)
        self._missed(report.sweep, due.cause, planned_at_seconds=due.planned_at.timestamp(), ticks=1)
        self._metrics.tick_lag_seconds.observe(max(0.0, (report.started_at - due.planned_at).total_seconds()))
        self._metrics.count_dispatch(
            report.sweep,
            reason=due.reason,
            outcome=report.outcome,
            enqueued=report.enqueued,
            skipped_duplicates=report.skipped_duplicates,
            is_scan_truncated=report.scan_truncated,
        )
        facts = {
            "sweep": report.sweep,
            "tick": report.tick_id,
            "enqueued": report.enqueued,
            "skipped_duplicates": report.skipped_duplicates,
            "reason": due.reason.value,
            "planned_at": due.planned_at,
        }
        optional = {"cause": due.cause, "refused": report.refused, "scan_truncated": report.scan_truncated}
        log = self._log.bind(**facts, **{name: value for name, value in optional.items() if value})
        if report.refused:
            self._metrics.enqueue_errors_total.labels(EnqueueErrorReason.ARGUMENTS.value).inc(report.refused)
            log.warning("dispatched", look="sweephand sweeps ticks shows the refused rows")
        elif report.outcome is TickOutcome.EMPTY and due.cause is None:
            log.debug("dispatched")
        else:
            log.info("dispatched")

    def moved_on(self, sweep: str, step: Step) -> None:
        """Tell of a step that dispatched nothing."""
        self._skipped(sweep, step)

    def failed(self, sweep: str, *, due: DueTick, error: str, is_timeout: bool) -> None:
        """Tell of a dispatch that the ledger has as an error."""
        reason = EnqueueErrorReason.STATEMENT_TIMEOUT if is_timeout else EnqueueErrorReason.STATEMENT
        self._metrics.enqueue_errors_total.labels(reason.value).inc()
        self._metrics.ticks_total.labels(self._metrics.sweeps.label(sweep), TickOutcome.ERROR.value).inc()
        self._log.error("dispatch_failed", sweep=sweep, planned_at=due.planned_at, error=error)

    def fenced(self, sweep: str, *, due: DueTick) -> None:
        """Tell that a later term refused a dispatch."""
        self._metrics.fenced_total.inc()
        self._metrics.ticks_total.labels(self._metrics.sweeps.label(sweep), TickOutcome.FENCED.value).inc()
        self._log.warning("dispatch_fenced", sweep=sweep, planned_at=due.planned_at)

    def run_on_start_refused(self, sweep: str) -> None:
        """Tell that a new leader did not tick at once because the present period has had its tick."""
        self._log.info("run_on_start_refused", sweep=sweep, because="this period has had its tick")

    def database_lost(self, error: str) -> None:
        """Tell that the database cannot be reached; called once for each outage."""
        self._metrics.enqueue_errors_total.labels(EnqueueErrorReason.DATABASE.value).inc()
        self._log.error("database_lost", error=error)

    def database_back(self, *, seconds: float) -> None:
        """Tell that the database answers again."""
        self._log.info("database_back", down_seconds=round(seconds, 1))

    def came_around(self, *, now_seconds: float) -> None:
        """Note that the loop has read the sweeps' states, in Unix seconds of the database's clock."""
        self._metrics.loop_last_success_timestamp_seconds.set(now_seconds)

    def short_interval(self, sweep: str, *, interval: timedelta) -> None:
        """Warn of a sweep that ticks more often than every 60 s in production."""
        self._log.warning("sweep_interval_short", sweep=sweep, interval_seconds=interval.total_seconds(), recommended_seconds=60)

    def _skipped(self, sweep: str, step: Step) -> None:
        for skipped in step.skipped:
            label = self._metrics.sweeps.label(sweep)
            self._metrics.ticks_total.labels(label, skipped.outcome.value).inc(skipped.covers)
            self._missed(sweep, skipped.cause, planned_at_seconds=skipped.planned_at.timestamp(), ticks=skipped.covers)
        for outcome in dict.fromkeys(skipped.outcome for skipped in step.skipped):
            self._log_skipped(sweep, [skipped for skipped in step.skipped if skipped.outcome is outcome])

    def _log_skipped(self, sweep: str, skipped: list[SkippedTick]) -> None:
        outcome = skipped[0].outcome
        log = self._log.bind(
            sweep=sweep,
            outcome=outcome.value,
            ticks=sum(one.covers for one in skipped),
            first=skipped[0].planned_at,
            last=skipped[-1].planned_at,
        )
        if outcome is TickOutcome.PAUSED:
            log.debug("ticks_skipped")
        else:
            causes = sorted({one.cause.value for one in skipped if one.cause is not None})
            log.warning("ticks_skipped", cause=",".join(causes) or None)

    def _missed(self, sweep: str, cause: MissCause | None, *, planned_at_seconds: float, ticks: int) -> None:
        if cause is MissCause.PAUSED:  # on purpose, so no alert may look at its moment
            self._metrics.missed_ticks_total.labels(self._metrics.sweeps.label(sweep), MissCause.PAUSED.value).inc(ticks)
        elif cause is not None:
            self._metrics.count_missed(sweep, reason=cause, ticks=ticks, last_planned_at_seconds=planned_at_seconds)
