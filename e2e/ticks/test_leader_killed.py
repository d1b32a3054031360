"""The leader is killed: another takes over when the lease ends, and makes up once for what was missed."""

import pytest

from e2e.system.case import Case

pytestmark = pytest.mark.misses_ticks


def test_leader_killed(case: Case) -> None:
    before = case.shop.ledger.term()
    stuck = case.shop.ledger.insert_stuck(3)
    case.shop.ledger.wait_until_published(stuck)
    # What a process counts between its last scrape and its death, Prometheus never learns.
    case.check_counters()

    killed_at = case.shop.kill_leader()

    after = case.shop.ledger.wait_for_term(before)
    lost = case.shop.ledger.insert_stuck(5)
    case.shop.ledger.wait_until_published(lost)
    case.figures["take_over_seconds"] = (after.since - killed_at).total_seconds()
    ticks = case.ticks()
    made_up = [tick for tick in ticks if tick.reason == "run_on_start"]
    missed = [tick for tick in ticks if tick.cause == "no_leader"]
    case.figures["missed"] = sum(tick.covers for tick in missed)
    assert missed
    assert [tick.term for tick in made_up] == [after.term]
    assert {tick.made_up_by for tick in missed if tick.outcome == "collapsed"} <= {made_up[0].id}
    case.check_done_once(stuck + lost)
    case.check_counters()
    case.check_alerts("SweephandTickMissed")
