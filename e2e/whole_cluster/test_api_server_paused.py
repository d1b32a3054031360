"""The Kubernetes API server falls silent three times: the leader goes on under the database's fence and misses no tick."""

import pytest

from e2e.system.case import Case

pytestmark = pytest.mark.shop("ticks")

TIMES = 3


def test_api_server_paused(case: Case) -> None:
    holder = case.shop.lease_holder()
    before = case.shop.ledger.term()
    restarts = case.shop.restarts()
    seconds = case.shop.timings.silence
    ripened: list[int] = []

    for _ in range(TIMES):
        # Not stuck before the silence has begun, and so found by a leader that nobody confirms.
        ripening = case.shop.ledger.insert_stuck(2, in_seconds=seconds / 2)
        with case.shop.api_server_paused() as silent_at:
            case.let_pass(seconds)
        published_at = case.shop.ledger.published_at(ripening)
        assert len(published_at) == len(ripening)
        assert all((moment - silent_at).total_seconds() < seconds for moment in published_at)
        ripened += ripening

    case.shop.ledger.wait_for_dispatch(since=case.shop.ledger.now())
    assert case.shop.lease_holder() == holder
    assert case.shop.ledger.term() == before
    assert case.shop.restarts() == restarts
    assert {tick.term for tick in case.ticks()} == {before.term}
    case.check_done_once(ripened)
    case.figures["missed"] = case.missed()
    assert case.figures["missed"] == 0
    case.check_counters()
    unconfirmed = case.shop.scrapes.series("sweephand_leader_unconfirmed", since=case.began_at)
    assert any(value == 1 for one in unconfirmed for _, value in one.samples)
    assert "SweephandTickMissed" not in case.check_alerts("SweephandLeaderUnconfirmed")
    assert "SweephandDispatcherNoLeader" not in case.shop.scrapes.alerts_fired(since=case.began_at)
