"""The dispatchers lose their right to the Lease: nobody leads, everybody says why, and it mends itself when the right is back."""

import pytest

from e2e.system.case import Case
from tests.support.waiting import until

pytestmark = pytest.mark.misses_ticks


def test_lease_forbidden(case: Case) -> None:
    before = case.shop.ledger.term()
    restarts = case.shop.restarts()

    with case.shop.lease_forbidden():
        case.let_pass(case.shop.timings.short_outage)
        case.check_alerts("SweephandLeaseForbidden", "SweephandDispatcherNoLeader")
        until(lambda: "lease_forbidden" in case.shop.logs("dispatcher"), every_seconds=1, message="the log says so")
        lost = case.shop.scrapes.increase("sweephand_leader_lost_total", since=case.began_at, reason="forbidden")
    given_back_at = case.shop.ledger.now()

    after = case.shop.ledger.wait_for_term(before)
    case.figures["recovery_seconds"] = (after.since - given_back_at).total_seconds()
    stuck = case.shop.ledger.insert_stuck(3)
    case.shop.ledger.wait_until_published(stuck)
    case.figures["missed"] = case.missed()
    assert lost == 1
    assert case.figures["missed"] > 0
    assert case.shop.restarts() == restarts
    case.check_done_once(stuck)
    case.check_counters()
