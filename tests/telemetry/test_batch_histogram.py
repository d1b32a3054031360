import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from sweephand.telemetry.batch_histogram import BatchHistogram

_BUCKETS = (0.1, 1, 10)


@pytest.mark.parametrize("values", [[], [0.05], [0.1, 1, 10], [0.5, 3.25, 99.5, 0.0]])
def test_a_batch_is_exported_as_prometheus_clients_own_histogram_would(values: list[float]) -> None:
    ours, theirs = CollectorRegistry(auto_describe=True), CollectorRegistry(auto_describe=True)
    batched = BatchHistogram("x_seconds", "How long.", ["queue"], buckets=_BUCKETS, registry=ours)
    single = Histogram("x_seconds", "How long.", ["queue"], buckets=_BUCKETS, registry=theirs)

    batched.declare("default")
    batched.observe_many(values, "default")
    series = single.labels("default")
    for value in values:
        series.observe(value)

    without_created = [line for line in generate_latest(theirs).splitlines() if b"_created" not in line]
    assert generate_latest(ours).splitlines() == without_created


def test_two_metrics_of_one_name_are_refused() -> None:
    registry = CollectorRegistry(auto_describe=True)
    BatchHistogram("x_seconds", "How long.", [], buckets=_BUCKETS, registry=registry)

    with pytest.raises(ValueError, match="Duplicated"):
        Histogram("x_seconds", "How long.", buckets=_BUCKETS, registry=registry)
