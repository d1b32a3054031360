"""What every process counts about its database."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sweephand.telemetry.labels import DatabaseErrorClass, PoolState


@dataclass(frozen=True, slots=True)
class DatabaseMetrics:
    """The metrics of one process's view of PostgreSQL."""

    pool_connections: Gauge
    pool_wait_seconds: Histogram
    errors_total: Counter
    read_only: Gauge
    schema_version_expected: Gauge
    schema_version_applied: Gauge

    @classmethod
    def create(cls, registry: CollectorRegistry) -> "DatabaseMetrics":
        """Return the database's metrics, registered; every label set starts at 0."""
        metrics = cls(
            pool_connections=Gauge(
                "sweephand_db_pool_connections", "Connections of the pool, by state.", ["state"], registry=registry
            ),
            pool_wait_seconds=Histogram(
                "sweephand_db_pool_wait_seconds",
                "How long a connection was waited for.",
                buckets=(0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30),
                registry=registry,
            ),
            errors_total=Counter(
                "sweephand_db_errors", "Errors that PostgreSQL reported, by kind.", ["class"], registry=registry
            ),
            read_only=Gauge("sweephand_db_read_only", "1 while the database refuses writes.", registry=registry),
            schema_version_expected=Gauge(
                "sweephand_schema_version_expected", "The schema's version that this process needs.", registry=registry
            ),
            schema_version_applied=Gauge(
                "sweephand_schema_version_applied", "The schema's version that the database has.", registry=registry
            ),
        )
        for state in PoolState:
            metrics.pool_connections.labels(state.value)
        for kind in DatabaseErrorClass:
            metrics.errors_total.labels(kind.value)
        return metrics

    def count_error(self, sqlstate: str | None) -> None:
        """Count an error by its SQLSTATE; None for one that the server did not send, such as a refused connection."""
        self.errors_total.labels(DatabaseErrorClass.of(sqlstate).value).inc()
