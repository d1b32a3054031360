"""The node of the leader loses its power: a dispatcher on another node takes over when the lease ends."""

import pytest

from e2e.system.case import Case
from e2e.system.cluster_shop import ClusterShop
from e2e.system.kubernetes import at, name_of
from e2e.system.nodes import cordoned, node_stopped

pytestmark = pytest.mark.shop("ticks")


def test_node_stopped(case: Case, cluster_shop: ClusterShop) -> None:
    # A node that took the database or both dispatchers with it would show something else.
    with_database = cluster_shop.release.node_of(f"{cluster_shop.release.prefix}-postgres-0")
    gather_dispatchers(cluster_shop, away_from=with_database)
    leader = cluster_shop.leader_pod()
    node = cluster_shop.release.node_of(leader)
    (follower,) = {name_of(pod) for pod in cluster_shop.release.pods("dispatcher")} - {leader}
    with cordoned(node):
        cluster_shop.release.replace_pods("dispatcher", [follower])
    assert cluster_shop.leader_pod() == leader
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
    case.check_done_once(stuck)
    case.figures["missed"] = case.missed()
    case.check_counters()
    case.check_alerts("SweephandTickMissed")


def gather_dispatchers(shop: ClusterShop, *, away_from: str) -> None:
    """Bring all dispatchers to other nodes than this one."""
    with cordoned(away_from):
        strays = [name_of(pod) for pod in shop.release.pods("dispatcher") if at(pod, "spec", "nodeName") == away_from]
        shop.release.replace_pods("dispatcher", strays)
