"""Count what happens in an election."""

from sweephand.model.lease import LeaseFailure
from sweephand.telemetry import LeaderMetrics
from sweephand.telemetry.labels import AcquiredHow, LostReason


class ElectionMetrics:
    """Be an ElectionObserver that sets the leader's metrics for the lease of this name."""

    def __init__(self, metrics: LeaderMetrics, *, lease_name: str) -> None:
        self._metrics = metrics
        self._master = metrics.master_status.labels(lease_name)
        self._master.set(0)

    def acquired(self, how: AcquiredHow) -> None:
        """Count a leadership that began."""
        self._metrics.acquired_total.labels(how.value).inc()
        self._master.set(1)

    def lost(self, reason: LostReason) -> None:
        """Count a leadership that ended."""
        self._metrics.lost_total.labels(reason.value).inc()
        self._metrics.unconfirmed.set(0)
        self._master.set(0)

    def unconfirmed(self, is_unconfirmed: bool) -> None:  # noqa: FBT001 (the protocol's form)
        """Show that the leader is not sure of its lease: it counts as no master then, but goes on."""
        self._metrics.unconfirmed.set(is_unconfirmed)
        self._master.set(not is_unconfirmed)

    def renew_seconds(self, seconds: float) -> None:
        """Count how long a request for the lease took."""
        self._metrics.renew_duration_seconds.observe(seconds)

    def renew_error(self, failure: LeaseFailure) -> None:
        """Count a request for the lease that failed."""
        self._metrics.renew_errors_total.labels(failure.value).inc()
