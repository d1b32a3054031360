"""What an elector counts."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sweephand.model.lease import LeaseFailure
from sweephand.telemetry.labels import AcquiredHow, LostReason


@dataclass(frozen=True, slots=True)
class LeaderMetrics:
    """The metrics of one dispatcher's leadership. Call `declare` with the lease's name before the first scrape."""

    master_status: Gauge
    acquired_total: Counter
    lost_total: Counter
    renew_errors_total: Counter
    renew_duration_seconds: Histogram
    term: Gauge
    unconfirmed: Gauge

    @classmethod
    def create(cls, registry: CollectorRegistry) -> "LeaderMetrics":
        """Return the elector's metrics, registered; the label sets that do not depend on the lease start at 0."""
        metrics = cls(
            # client-go's own name, without our prefix, so that stock dashboards work.
            master_status=Gauge(
                "leader_election_master_status",
                "1 while this process leads and its lease is confirmed.",
                ["name"],
                registry=registry,
            ),
            acquired_total=Counter(
                "sweephand_leader_acquired", "Times that this process gained the lead.", ["how"], registry=registry
            ),
            lost_total=Counter("sweephand_leader_lost", "Times that this process's lead ended.", ["reason"], registry=registry),
            renew_errors_total=Counter(
                "sweephand_leader_renew_errors", "Requests for the lease that failed.", ["reason"], registry=registry
            ),
            renew_duration_seconds=Histogram(
                "sweephand_leader_renew_duration_seconds",
                "How long a request for the lease took.",
                buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
                registry=registry,
            ),
            term=Gauge("sweephand_leader_term", "The term that this process leads in; 0 when it does not.", registry=registry),
            unconfirmed=Gauge(
                "sweephand_leader_unconfirmed",
                "1 while this process goes on leading although nobody confirms its lease.",
                registry=registry,
            ),
        )
        for how in AcquiredHow:
            metrics.acquired_total.labels(how.value)
        for lost in LostReason:
            metrics.lost_total.labels(lost.value)
        for error in LeaseFailure:
            metrics.renew_errors_total.labels(error.value)
        return metrics

    def declare(self, lease_name: str) -> None:
        """Start the status of a lease at 0: not the leader."""
        self.master_status.labels(lease_name).set(0)
