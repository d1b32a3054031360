"""docs/reference/metrics.md tells of every metric that a process exports, and of no other."""

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from sweephand.model.outcomes import AttemptOutcome
from sweephand.model.ticks import TickOutcome, TickReason
from sweephand.telemetry import (
    ApiMetrics,
    BacklogMetrics,
    DatabaseMetrics,
    DiscardReason,
    DispatcherMetrics,
    LeaderMetrics,
    WorkerMetrics,
)
from sweephand.telemetry.labels import CappedNames, DatabaseErrorClass

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
_ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*?) \| (.*?) \|", re.MULTILINE)


def _registry() -> CollectorRegistry:
    """Return a registry with everything that the processes of an application of one job and one sweep export."""
    registry = CollectorRegistry(auto_describe=True)
    WorkerMetrics.create(registry).declare("default", kind="publish_product")
    dispatcher = DispatcherMetrics.create(registry)
    dispatcher.declare("stuck_publications")
    dispatcher.show_sweep("stuck_publications", next_tick_seconds=60, last_tick_seconds=0, last_missed_tick_seconds=0)
    dispatcher.lane_last_success_timestamp_seconds.labels("rescue")
    dispatcher.clock_offset_seconds.labels("postgres")
    backlog = BacklogMetrics.create(registry)
    backlog.declare_queue("default")
    backlog.declare_sweep("stuck_publications")
    backlog.queue_table_bytes.labels("job")
    backlog.queue_dead_tuples.labels("job")
    LeaderMetrics.create(registry).declare("sweephand-shop")
    api = ApiMetrics.create(registry)
    api.declare_route("GET", route="/products/{product_id}")
    api.declare_queue("default")
    DatabaseMetrics.create(registry)
    return registry


def _exported() -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Return the type, the labels and the help of each metric, under the name that a query uses."""
    exported = {}
    for family in _registry().collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({label for sample in family.samples for label in sample.labels if label != "le"})
        exported[name] = (family.type, tuple(labels), family.documentation)
    return exported


def test_every_exported_metric_is_documented_as_it_is_and_no_other() -> None:
    documented = {
        name: (kind, tuple(sorted(re.findall(r"`(\w+)`", labels))), text)
        for name, kind, labels, text in _ROW.findall(REFERENCE.read_text(encoding="utf-8"))
    }
    documented.pop("sweephand_build_info")  # made by create_registry, which needs the installed distribution

    assert documented == _exported()


def test_names_have_their_prefix_and_their_unit() -> None:
    exported = _exported()

    without_prefix = [name for name in exported if not name.startswith("sweephand_")]
    histograms = [name for name, (kind, *_) in exported.items() if kind == "histogram"]
    assert without_prefix == ["leader_election_master_status"]
    assert [name for name in histograms if not name.endswith("_seconds")] == []


def test_every_counter_starts_at_0() -> None:
    counters = [family for family in _registry().collect() if family.type == "counter"]

    assert [family.name for family in counters if not family.samples] == []
    totals = [sample for family in counters for sample in family.samples if sample.name.endswith("_total")]
    assert {sample.value for sample in totals} == {0.0}


def test_a_worker_starts_every_outcome_of_a_kind_at_0() -> None:
    registry = CollectorRegistry()
    metrics = WorkerMetrics.create(registry)

    metrics.declare("mail", kind="send")

    labels = {"queue": "mail", "kind": "send"}
    for outcome in AttemptOutcome:
        assert registry.get_sample_value("sweephand_worker_jobs_total", {**labels, "outcome": outcome.value}) == 0
    for reason in DiscardReason:
        assert registry.get_sample_value("sweephand_worker_discarded_total", {**labels, "reason": reason.value}) == 0
    assert registry.get_sample_value("sweephand_worker_job_duration_seconds_count", labels) == 0


def test_moments_of_a_sweep_are_absent_until_they_are_known() -> None:
    registry = CollectorRegistry()
    metrics = DispatcherMetrics.create(registry)
    metrics.declare("stuck")

    metrics.show_sweep("stuck", next_tick_seconds=1_800_000_000, last_tick_seconds=None)

    moment = "sweephand_dispatcher_sweep_{}_tick_timestamp_seconds"
    assert registry.get_sample_value(moment.format("next"), {"sweep": "stuck"}) == 1_800_000_000
    assert registry.get_sample_value(moment.format("last"), {"sweep": "stuck"}) is None


def test_a_dispatch_is_counted_from_its_report() -> None:
    registry = CollectorRegistry()
    metrics = DispatcherMetrics.create(registry)
    metrics.declare("stuck")

    metrics.count_dispatch(
        "stuck", reason=TickReason.TICK, outcome=TickOutcome.OK, enqueued=3, skipped_duplicates=2, is_scan_truncated=True
    )

    labels = {"sweep": "stuck", "reason": "tick"}
    assert registry.get_sample_value("sweephand_dispatcher_enqueued_total", labels) == 3
    assert registry.get_sample_value("sweephand_dispatcher_skipped_duplicates_total", labels) == 2
    assert registry.get_sample_value("sweephand_dispatcher_ticks_total", {"sweep": "stuck", "outcome": "ok"}) == 1
    assert registry.get_sample_value("sweephand_dispatcher_scan_truncated_total", {"sweep": "stuck"}) == 1


def test_the_201st_kind_is_other() -> None:
    registry = CollectorRegistry()
    metrics = WorkerMetrics.create(registry)
    for number in range(205):
        metrics.declare("default", kind=f"kind_{number}")

    for kind in ("kind_3", "kind_203", "kind_204"):
        metrics.count_attempts(
            "default",
            kind=kind,
            outcomes={AttemptOutcome.COMPLETED: 1},
            durations_seconds=[0.1],
            waits_seconds=[0.01],
        )

    def count(kind: str) -> float | None:
        labels = {"queue": "default", "kind": kind, "outcome": "completed"}
        return registry.get_sample_value("sweephand_worker_jobs_total", labels)

    assert count("kind_3") == 1
    assert count("kind_203") is None
    assert count("other") == 2


def test_a_known_name_stays_itself_after_the_cap() -> None:
    names = CappedNames(limit=2)

    assert [names.label(name) for name in ("a", "b", "c", "a")] == ["a", "b", "other", "a"]


def test_a_database_error_has_one_class() -> None:
    classes = {sqlstate: DatabaseErrorClass.of(sqlstate) for sqlstate in (None, "08006", "57P01", "25006", "57014", "40001")}

    assert classes == {
        None: DatabaseErrorClass.CONNECTION,
        "08006": DatabaseErrorClass.CONNECTION,
        "57P01": DatabaseErrorClass.CONNECTION,
        "25006": DatabaseErrorClass.READ_ONLY,
        "57014": DatabaseErrorClass.TIMEOUT,
        "40001": DatabaseErrorClass.CONFLICT,
    }
    assert DatabaseErrorClass.of("42601") is DatabaseErrorClass.OTHER
