"""What a process tells about itself: its log lines and its metrics.

`configure_logging` is called once by the command. Metrics are objects made over a registry of the process's own and
handed to what counts with them; there is no global metric. docs/reference/metrics.md lists them all.
"""

from sweephand.telemetry.api_metrics import ApiMetrics
from sweephand.telemetry.backlog_metrics import BacklogMetrics
from sweephand.telemetry.database_metrics import DatabaseMetrics
from sweephand.telemetry.dispatcher_metrics import DispatcherMetrics
from sweephand.telemetry.labels import (
    AcquiredHow,
    ClockReference,
    DatabaseErrorClass,
    DiscardReason,
    EnqueueErrorReason,
    EnqueueOutcomeLabel,
    LostReason,
    PoolState,
)
from sweephand.telemetry.leader_metrics import LeaderMetrics
from sweephand.telemetry.logs import configure_logging
from sweephand.telemetry.registry import create_registry
from sweephand.telemetry.worker_metrics import WorkerMetrics

__all__ = [
    "AcquiredHow",
    "ApiMetrics",
    "BacklogMetrics",
    "ClockReference",
    "DatabaseErrorClass",
    "DatabaseMetrics",
    "DiscardReason",
    "DispatcherMetrics",
    "EnqueueErrorReason",
    "EnqueueOutcomeLabel",
    "LeaderMetrics",
    "LostReason",
    "PoolState",
    "WorkerMetrics",
    "configure_logging",
    "create_registry",
]
