"""No dispatcher runs for minutes: the ledger and the alerts tell of it, and the next leader makes up for it once."""

import pytest

from e2e.system.case import Case

pytestmark = pytest.mark.misses_ticks


def test_no_dispatcher(case: Case) -> None:
    before = case.shop.ledger.term()

    case.shop.scale_dispatchers(0)
    stuck = case.shop.ledger.insert_stuck(7)
    created = case.shop.create_product()
    case.let_pass(case.shop.timings.outage)
    # Jobs of requests never needed the dispatcher; only what got lost waits for it.
    assert case.shop.ledger.unpublished([created, *stuck]) == list(stuck)
    assert case.ticks() == []
    case.check_alerts("SweephandDispatcherAbsent")
    case.shop.scale_dispatchers(2)

    after = case.shop.ledger.wait_for_term(before)
    case.shop.ledger.wait_until_published(stuck)
    made_up = [tick for tick in case.ticks() if tick.reason == "run_on_start"]
    case.figures["missed"] = case.missed()
    assert case.figures["missed"] >= case.shop.timings.outage // case.shop.timings.interval
    assert [(tick.term, tick.enqueued) for tick in made_up] == [(after.term, len(stuck))]
    case.check_done_once([created, *stuck])
    case.check_counters()
    case.check_alerts("SweephandTickMissed")
