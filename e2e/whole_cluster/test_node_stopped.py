"""The node of the leader loses its power: a dispatcher on another node takes over when the lease ends."""

import pytest

from e2e.system.case import Case
from e2e.system.cluster_shop import ClusterShop
from e2e.system.nodes import node_stopped

pytestmark = pytest.mark.shop("ticks")


def test_node_stopped(case: Case, cluster_shop: ClusterShop) -> None:
    # A node that takes the database with it would show something else.
    with_database = cluster_shop.node_of(f"{cluster_shop.prefix}-postgres-0")
    for _ in range(4):
        if cluster_shop.node_of(cluster_shop.leader_pod()) != with_database:
            break
        term = cluster_shop.ledger.term()
        cluster_shop.stop_leader()
        cluster_shop.ledger.wait_for_term(term)
    node = cluster_shop.node_of(cluster_shop.leader_pod())
    assert node != with_database
    before = cluster_shop.ledger.term()

    stopped_at = cluster_shop.diary.note(f"node {node} is stopped")
    with node_stopped(node):
        after = cluster_shop.ledger.wait_for_term(before)
        case.figures["take_over_seconds"] = (after.since - stopped_at).total_seconds()
        cluster_shop.ledger.wait_for_dispatch(since=after.since)
    cluster_shop.diary.note("the node is back")

    stuck = cluster_shop.ledger.insert_stuck(3)
    cluster_shop.ledger.wait_until_published(stuck)
    ticks = case.ticks()
    assert [tick.term for tick in ticks if tick.reason == "run_on_start"][-1:] == [after.term]
    assert set(cluster_shop.ledger.executions(stuck).values()) == {1}
    case.figures["missed"] = case.missed()
    case.check_counters()
    case.check_alerts("SweephandTickMissed")
