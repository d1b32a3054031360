"""Two releases stand side by side in one namespace: each has its own Lease, leader, ledger and work."""

from pathlib import Path

import pytest

from e2e.system.case import Case
from e2e.system.cluster_prometheus import ClusterPrometheus
from e2e.system.cluster_shop import ClusterShop

pytestmark = pytest.mark.shop("quiet")


def test_two_releases(case: Case, cluster_shop: ClusterShop, prometheus: ClusterPrometheus, tmp_path: Path) -> None:
    before = cluster_shop.ledger.term()
    values = {"dispatcher": {"replicas": 1}}
    second = ClusterShop("quiet", directory=tmp_path, prometheus=prometheus, values=values, release="second")
    second.install()

    mine, theirs = cluster_shop.create_product(), second.create_product()
    stuck = second.ledger.insert_stuck(2)
    cluster_shop.ledger.wait_until_published([mine])
    second.ledger.wait_until_published([theirs, *stuck])

    assert second.lease_holder() == second.ledger.term().holder
    assert cluster_shop.lease_holder() == cluster_shop.ledger.term().holder == before.holder
    assert second.lease_holder() != cluster_shop.lease_holder()
    assert second.ledger.executions([theirs, *stuck]) == dict.fromkeys((theirs, *stuck), 1)
    case.check_done_once([mine])
    second.close()
    second.release.uninstall()

    # What one leaves behind when it goes is nothing of the other's.
    again = cluster_shop.create_product()
    cluster_shop.ledger.wait_until_published([again])
    assert cluster_shop.ledger.term() == before
    assert case.missed() == 0
    case.check_counters()
    case.check_alerts()
