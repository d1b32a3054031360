"""The release is installed: products are published, by their job and by the sweep, each once."""

from e2e.system.case import Case


def test_publishing(case: Case) -> None:
    created = [case.shop.create_product() for _ in range(3)]
    stuck = case.shop.ledger.insert_stuck(10)

    case.shop.ledger.wait_until_published([*created, *stuck])

    case.check_done_once([*created, *stuck])
    assert sum(tick.enqueued for tick in case.ticks()) == len(stuck)
    case.check_counters()
    case.shop.scrapes.wait_for_increase(
        "sweephand_worker_jobs_total", len(created) + len(stuck), since=case.began_at, outcome="completed"
    )
    assert "SweephandTickMissed" not in case.check_alerts()
