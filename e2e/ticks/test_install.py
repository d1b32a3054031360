"""The release's own test passes: a job enqueued over the API is done, and one dispatcher holds the Lease."""

from e2e.system.case import Case
from e2e.system.cluster_shop import ClusterShop


def test_helm_test(case: Case, cluster_shop: ClusterShop) -> None:
    said = cluster_shop.release.helm("test", cluster_shop.release.name, "--logs")

    holder = cluster_shop.lease_holder()
    assert "a worker did the job" in said
    assert f"one dispatcher holds the Lease {cluster_shop.release.prefix}-dispatcher" in said
    assert holder == cluster_shop.ledger.term().holder
    assert case.missed() == 0
    cluster_shop.scrapes.wait_for_increase("sweephand_api_enqueue_total", 1, since=case.began_at, outcome="enqueued")
    assert "SweephandTickMissed" not in case.check_alerts()
