"""The next version is deployed under load and rolled back: no request fails, no job is lost to a worker that is too old."""

from e2e.system.case import Case
from e2e.system.cluster_shop import ClusterShop
from tests.support.jobs import insert_job
from tests.support.waiting import until

NEXT: dict[str, object] = {"image": {"tag": "e2e-next"}, "app": {"target": "next_shop:create_app"}}
KIND = "remind"  # what e2e/apps/next_shop.py has and the storefront has not


def test_upgrade_and_rollback(case: Case, cluster_shop: ClusterShop) -> None:
    before = cluster_shop.ledger.term()
    with cluster_shop.load(per_second=5) as load:
        early = insert_reminders(cluster_shop, 10)
        cluster_shop.diary.note("upgrade to the next version")
        cluster_shop.release.install(values=NEXT)
        cluster_shop.diary.note("upgraded")
        late = insert_reminders(cluster_shop, 10)
        until(
            lambda: cluster_shop.ledger.jobs("completed", kind=KIND) == len(early) + len(late),
            deadline_seconds=120,
            every_seconds=0.5,
            message="the new workers did the new jobs",
        )
        cluster_shop.diary.note("rollback")
        cluster_shop.release.roll_back()
        cluster_shop.diary.note("rolled back")
        stranded = insert_reminders(cluster_shop, 1)
        cluster_shop.ledger.wait_until_published([cluster_shop.create_product()])

    cluster_shop.ledger.wait_until_published(load.created)
    assert load.refused == []
    case.check_done_once(load.created)
    # One attempt each, all by workers that know the kind; what no worker knows waits, untouched.
    assert attempts(cluster_shop, [*early, *late]) == [("completed", 1)] * 20
    assert attempts(cluster_shop, stranded) == []
    assert cluster_shop.ledger.jobs("available", kind=KIND) == 1
    case.figures["jobs"] = len(load.created)
    case.figures["terms"] = cluster_shop.ledger.term().term - before.term
    case.figures["missed"] = case.missed()
    assert case.figures["missed"] == 0
    cluster_shop.scrapes.wait_for_increase("sweephand_worker_jobs_total", 20, since=case.began_at, kind=KIND, outcome="completed")
    assert "SweephandTickMissed" not in case.check_alerts()


def insert_reminders(shop: ClusterShop, count: int) -> list[int]:
    """Enqueue jobs of the new kind, as a new API would while old workers still run."""
    with shop.ledger.connection() as connection:
        jobs = [insert_job(connection, KIND, args={"number": number}) for number in range(count)]
        connection.execute("SELECT pg_notify('sweephand.default', '')")
    return jobs


def attempts(shop: ClusterShop, jobs: list[int]) -> list[tuple[str, int]]:
    """Return the outcome and the number of each attempt of these jobs."""
    with shop.ledger.connection() as connection:
        rows = connection.execute(
            "SELECT outcome, attempt FROM sweephand.job_attempt WHERE job_id = ANY (%s)", (jobs,)
        ).fetchall()
    return [(str(outcome), int(attempt)) for outcome, attempt in rows]
