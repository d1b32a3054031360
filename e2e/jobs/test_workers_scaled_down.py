"""Workers go from four to one under load, and a long job outlasts SIGTERM: every job runs to its end, once."""

from e2e.system.case import Case
from tests.support.waiting import until


def test_workers_scaled_down(case: Case) -> None:
    """Workers go from four to one under load: every job runs to its end, once."""
    with case.shop.slow_warehouse(seconds=2):
        case.shop.scale_workers(4)
        with case.shop.load(per_second=10) as load:
            # So many that those that go have something to end.
            until(lambda: case.shop.ledger.jobs("running") >= 8, deadline_seconds=60, every_seconds=0.1, message="all are busy")
            case.shop.scale_workers(1)
        case.shop.ledger.wait_until_published(load.created)

    assert load.refused == []
    case.check_done_once(load.created)
    assert set(case.shop.ledger.attempts(load.created)) == {"completed"}
    case.figures["jobs"] = len(load.created)
    case.shop.scrapes.wait_for_increase("sweephand_api_enqueue_total", len(load.created), since=case.began_at, outcome="enqueued")
    case.check_alerts()


def test_long_job_through_sigterm(case: Case) -> None:
    """A worker is told to end while a long job runs: it waits for the job's end, and nothing is done twice."""
    with case.shop.slow_warehouse(seconds=case.shop.timings.long_job):
        product_id = case.shop.create_product()
        until(lambda: case.shop.ledger.jobs("running"), deadline_seconds=60, every_seconds=0.2, message="the job runs")
        case.shop.replace_workers()
        case.shop.ledger.wait_until_published([product_id])

    assert case.shop.ledger.attempts([product_id]) == {"completed": 1}
    # The worker that did it ended with it, and so before the next scrape; what would tell of a loss are the others.
    case.shop.scrapes.wait_for_increase("sweephand_api_enqueue_total", 1, since=case.began_at, outcome="enqueued")
    for outcome in ("interrupted", "lost"):
        assert case.shop.scrapes.increase("sweephand_worker_jobs_total", since=case.began_at, outcome=outcome) == 0
    case.check_alerts()
