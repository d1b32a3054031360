"""What the API counts."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram

from sweephand.telemetry.labels import EnqueueOutcomeLabel

_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class ApiMetrics:
    """The metrics of one API process. `route` is a route's template, or `other`: never a path that a client chose."""

    requests_total: Counter
    request_duration_seconds: Histogram
    enqueue_total: Counter

    @classmethod
    def create(cls, registry: CollectorRegistry) -> "ApiMetrics":
        """Return the API's metrics, registered."""
        return cls(
            requests_total=Counter(
                "sweephand_api_requests", "Answers, by status code.", ["method", "route", "code"], registry=registry
            ),
            request_duration_seconds=Histogram(
                "sweephand_api_request_duration_seconds",
                "From a request's first byte to its answer's last.",
                ["method", "route"],
                buckets=_BUCKETS,
                registry=registry,
            ),
            enqueue_total=Counter(
                "sweephand_api_enqueue",
                "Jobs that requests enqueued, by outcome, whether or not they committed.",
                ["queue", "outcome"],
                registry=registry,
            ),
        )

    def declare_route(self, method: str, *, route: str) -> None:
        """Start a route's series at 0; of the codes 200 and 500, which error ratios are made from."""
        self.request_duration_seconds.labels(method, route)
        for code in ("200", "500"):
            self.requests_total.labels(method, route, code)

    def count_enqueue(self, queue: str, *, is_duplicate: bool) -> None:
        """Count a job that a request enqueued."""
        outcome = EnqueueOutcomeLabel.DUPLICATE if is_duplicate else EnqueueOutcomeLabel.ENQUEUED
        self.enqueue_total.labels(queue, outcome.value).inc()

    def declare_queue(self, queue: str) -> None:
        """Start the enqueues of a queue at 0."""
        for outcome in EnqueueOutcomeLabel:
            self.enqueue_total.labels(queue, outcome.value)
