"""The leader is frozen for over two leases and thaws: another has taken over, and it dispatches nothing more."""

import pytest

from e2e.system.case import Case

pytestmark = pytest.mark.misses_ticks


def test_leader_frozen(case: Case) -> None:
    before = case.shop.ledger.term()
    restarts = case.shop.restarts()

    with case.shop.frozen_leader() as frozen_at:
        after = case.shop.ledger.wait_for_term(before)
        case.figures["take_over_seconds"] = (after.since - frozen_at).total_seconds()
        case.let_pass(2 * case.shop.timings.lease + case.shop.timings.interval)

    # What is found from now on is found by the new leader alone.
    stuck = case.shop.ledger.insert_stuck(5)
    case.shop.ledger.wait_until_published(stuck)
    case.shop.ledger.wait_for_dispatch(since=case.shop.ledger.now())
    ticks = case.ticks()
    thawed = [tick for tick in ticks if tick.started_at and tick.started_at > after.since]
    assert {tick.term for tick in thawed} == {after.term}
    assert case.shop.ledger.term().term == after.term
    assert case.shop.restarts() == restarts
    case.check_done_once(stuck)
    case.figures["missed"] = case.missed()
    case.check_counters()
    case.check_alerts("SweephandTickMissed")
