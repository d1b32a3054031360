"""PostgreSQL is killed, refuses writes, or is away for minutes: nothing restarts, nothing is lost, and work resumes by itself."""

from e2e.system.case import Case
from tests.support.waiting import until

RESUMES_WITHIN_SECONDS = 15


def test_postgres_killed(case: Case) -> None:
    """PostgreSQL is killed under load: nothing restarts, nothing that was committed is lost, work resumes by itself."""
    restarts = case.shop.restarts()

    with case.shop.load(per_second=5) as load:
        first = [case.shop.create_product() for _ in range(5)]
        case.shop.kill_postgres()
        back_at = case.shop.ledger.now()
        later = [case.shop.create_product() for _ in range(5)]
        case.shop.ledger.wait_until_published([*first, *later])

    case.shop.ledger.wait_until_published(load.created)
    case.figures["recovery_seconds"] = (max(case.shop.ledger.published_at(later)) - back_at).total_seconds()
    case.check_done_once(load.created)
    assert case.shop.restarts() == restarts
    case.figures["missed"] = case.missed()
    assert case.figures["missed"] == 0
    case.check_counters()
    case.check_alerts()


def test_postgres_read_only(case: Case) -> None:
    """PostgreSQL refuses writes for a minute: nothing restarts, and work resumes within seconds of its end."""
    restarts = case.shop.restarts()

    case.shop.diary.note("PostgreSQL refuses writes")
    waiting = case.shop.ledger.insert_stuck(5, in_seconds=2)
    with case.shop.ledger.read_only():
        case.let_pass(case.shop.timings.short_outage)
        assert case.shop.ledger.unpublished(waiting) == list(waiting)
        case.check_alerts("SweephandDatabaseReadOnly")
    writable_at = case.shop.diary.note("PostgreSQL takes writes again")

    case.shop.ledger.wait_until_published(waiting)
    resumed_at = min(case.shop.ledger.published_at(waiting))
    case.figures["recovery_seconds"] = (resumed_at - writable_at).total_seconds()
    assert case.figures["recovery_seconds"] < RESUMES_WITHIN_SECONDS + case.shop.timings.interval
    case.check_done_once(waiting)
    assert case.shop.restarts() == restarts
    assert {tick.cause for tick in case.ticks() if tick.cause} == {"db_down"}
    case.check_counters()


def test_postgres_stopped(case: Case) -> None:
    """PostgreSQL is away for minutes: nothing restarts, every process says what it waits for, and work resumes by itself."""
    restarts = case.shop.restarts()
    holder = case.shop.lease_holder()

    with case.shop.postgres_stopped():
        case.let_pass(case.shop.timings.outage)
        answers = {component: case.shop.readiness(component) for component in ("api", "worker", "dispatcher")}
    back_at = case.shop.ledger.now()

    stuck = case.shop.ledger.insert_stuck(3)
    created = case.shop.create_product()
    case.shop.ledger.wait_until_published([created, *stuck])
    resumed_at = min(case.shop.ledger.published_at([created, *stuck]))
    case.figures["recovery_seconds"] = (resumed_at - back_at).total_seconds()
    for component, answer in answers.items():
        assert "PostgreSQL" in answer or "database" in answer, f"{component}: {answer}"
    assert case.shop.restarts() == restarts
    assert case.shop.lease_holder() == holder
    case.check_done_once([created, *stuck])
    until(lambda: any(tick.cause == "db_down" for tick in case.ticks()), every_seconds=1, message="the ledger says why")
    assert case.missed() == 0
    case.check_counters()
    case.check_alerts()
