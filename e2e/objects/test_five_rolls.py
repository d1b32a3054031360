"""Five rolling updates within one period of a sweep: its one tick has run, and every new leader is refused another."""

import pytest

from e2e.system.case import Case

pytestmark = pytest.mark.shop("quiet")

ROLLS = 5


def test_five_rolls(case: Case) -> None:
    first = case.shop.ledger.ticks(since=case.began_at.min.replace(tzinfo=case.began_at.tzinfo))
    before = case.shop.ledger.term()

    for _ in range(ROLLS):
        term = case.shop.ledger.term()
        case.shop.roll_dispatchers()
        case.shop.ledger.wait_for_term(term)

    after = case.shop.ledger.term()
    case.figures["terms"] = after.term - before.term
    assert after.term - before.term >= ROLLS
    assert [(tick.reason, tick.is_dispatch) for tick in first] == [("run_on_start", True)]
    assert case.ticks() == []
    assert "run_on_start_refused" in case.shop.logs("dispatcher")
    case.check_counters()
    assert "SweephandTickMissed" not in case.check_alerts()
