"""The dispatchers are rolled: the lead is handed over, and not one tick is missed."""

from e2e.system.case import Case


def test_rolling_update(case: Case) -> None:
    """A rolling update replaces all dispatchers: the lead is handed over, and not one tick is missed."""
    before = case.shop.ledger.term()

    case.shop.roll_dispatchers()

    after = case.shop.ledger.wait_for_term(before)
    stuck = case.shop.ledger.insert_stuck(3)
    case.shop.ledger.wait_until_published(stuck)
    case.figures["terms"] = after.term - before.term
    case.figures["missed"] = case.missed()
    assert case.figures["missed"] == 0
    case.check_done_once(stuck)
    case.check_counters()
    assert "SweephandTickMissed" not in case.check_alerts()


def test_sigterm_of_the_leader(case: Case) -> None:
    """The leader is told to end: the lead is handed over at once, and not one tick is missed."""
    before = case.shop.ledger.term()

    told_at = case.shop.stop_leader()

    after = case.shop.ledger.wait_for_term(before)
    case.figures["hand_over_seconds"] = (after.since - told_at).total_seconds()
    case.shop.ledger.wait_for_dispatch(since=after.since)
    assert case.missed() == 0
    assert "SweephandTickMissed" not in case.check_alerts()
