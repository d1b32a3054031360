"""Dispatchers as real processes, with a Lease on an API server that fails in every way: no terms overlap, the ledger is exact."""

import signal
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.fake_lease_api import ApiFault, FakeLeaseApi
from tests.support.jobs import open_connection
from tests.support.processes import Commands, RunningCommand
from tests.support.waiting import until

LEASE = "sweephand-engine-secondly"
LEASE_SECONDS = 3
START_SECONDS = 60
PATIENCE_SECONDS = 40

pytestmark = pytest.mark.timeout(240)


class Cluster:
    """Two dispatchers, their API server and their database."""

    def __init__(self, commands: Commands, *, api: FakeLeaseApi, connection: psycopg.Connection) -> None:
        self.api = api
        self._commands = commands
        self._connection = connection
        self.leader = self.start()
        self.leader.wait_for_log("term_began", deadline_seconds=START_SECONDS)
        self.follower = self.start()
        self.follower.wait_for_log("dispatcher_started", deadline_seconds=START_SECONDS)
        until(lambda: self.api.watches() == 2, deadline_seconds=START_SECONDS, message="both watch the Lease")
        self.wait_for_ticks(term=1)

    def start(self) -> RunningCommand:
        return self._commands.start(
            "dispatcher",
            app="tests.engine.apps:secondly",
            env={
                "SWEEPHAND_ELECTOR": "kubernetes",
                "SWEEPHAND_KUBERNETES_API_URL": self.api.url,
                "SWEEPHAND_LEASE_NAMESPACE": "default",
                "SWEEPHAND_LEASE_DURATION_SECONDS": str(LEASE_SECONDS),
                "SWEEPHAND_RENEW_DEADLINE_SECONDS": "2",
                "SWEEPHAND_RETRY_PERIOD_SECONDS": "0.5",
                "SWEEPHAND_ENVIRONMENT": "development",
            },
        )

    def term(self) -> int:
        return self._number("SELECT term FROM sweephand.leader")

    def ticks(self, *, term: int) -> int:
        return self._number("SELECT count(*) FROM sweephand.tick WHERE term = %s AND outcome IN ('ok', 'empty')", term)

    def wait_for_ticks(self, *, term: int, more: int = 3) -> None:
        wanted = self.ticks(term=term) + more
        until(
            lambda: self.ticks(term=term) >= wanted,
            deadline_seconds=PATIENCE_SECONDS,
            message=f"{more} more ticks of term {term}",
        )

    def check_ledger(self) -> None:
        """No tick of a term began after the first of a later one, and each second of the grid has exactly one row."""
        overlaps = self._number("""
            SELECT count(*) FROM sweephand.tick AS old JOIN sweephand.tick AS new ON new.term > old.term
            WHERE old.outcome IN ('ok', 'empty') AND new.outcome IN ('ok', 'empty') AND old.started_at > new.started_at""")
        covered = """
            SELECT planned_at + make_interval(secs => n) AS at FROM sweephand.tick, generate_series(0, covers - 1) AS n
            WHERE outcome <> 'fenced' AND reason <> 'manual'"""
        twice = self._number(f"SELECT count(*) - count(DISTINCT at) FROM ({covered}) AS covered")  # noqa: S608 our own words
        gaps = self._number(
            f"SELECT extract(epoch FROM max(at) - min(at)) + 1 - count(DISTINCT at) FROM ({covered}) AS covered"  # noqa: S608 our own words
        )
        assert (overlaps, twice, gaps) == (0, 0, 0)

    def missed(self) -> int:
        return self._number("SELECT count(*) FROM sweephand.tick WHERE cause = 'no_leader'")

    def _number(self, query: str, *values: object) -> int:
        row = self._connection.execute(query.encode(), values).fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def cluster(commands: Commands, database_url: str) -> Iterator[Cluster]:
    with FakeLeaseApi() as api, open_connection(database_url) as connection:
        connection.execute("CREATE TABLE product (id int)")
        connection.execute("INSERT INTO product SELECT generate_series(1, 3)")
        yield Cluster(commands, api=api, connection=connection)


def test_sigterm_hands_over_by_the_watch(cluster: Cluster) -> None:
    cluster.leader.kill(signal.SIGTERM)

    cluster.wait_for_ticks(term=2)
    assert cluster.leader.wait() == 0
    assert "lease_released" in cluster.leader.log
    cluster.check_ledger()


def test_sigkill_is_taken_over_when_the_lease_ends(cluster: Cluster) -> None:
    cluster.leader.kill(signal.SIGKILL)

    cluster.wait_for_ticks(term=2)
    cluster.check_ledger()


def test_a_leader_that_was_stopped_for_two_leases_dispatches_nothing_more(cluster: Cluster) -> None:
    cluster.leader.kill(signal.SIGSTOP)
    cluster.wait_for_ticks(term=2, more=2 * LEASE_SECONDS)
    cluster.leader.kill(signal.SIGCONT)

    cluster.leader.wait_for_log("leader_lost", deadline_seconds=PATIENCE_SECONDS)
    cluster.wait_for_ticks(term=2)
    assert cluster.term() == 2
    assert cluster.leader.is_running()
    cluster.check_ledger()


def test_an_api_server_that_is_away_in_any_way_costs_no_tick(cluster: Cluster) -> None:
    ways = (ApiFault.HANG, ApiFault.RESET, ApiFault.SERVER_ERROR, ApiFault.UNAUTHORIZED)
    for count, fault in enumerate(ways, start=1):
        cluster.api.fault = fault
        cluster.leader.wait_for_log("lease_unconfirmed", deadline_seconds=PATIENCE_SECONDS, count=count)
        cluster.wait_for_ticks(term=1, more=LEASE_SECONDS + 1)
        cluster.api.fault = ApiFault.NONE
        cluster.leader.wait_for_log("lease_confirmed_again", deadline_seconds=PATIENCE_SECONDS, count=count)

    cluster.wait_for_ticks(term=1)
    assert cluster.term() == 1
    assert cluster.missed() == 0
    assert cluster.leader.is_running()
    assert cluster.follower.is_running()
    cluster.check_ledger()


def test_writes_that_only_meet_conflicts_end_in_one_leader(cluster: Cluster) -> None:
    cluster.api.fault = ApiFault.CONFLICT
    cluster.leader.wait_for_log("lease_unconfirmed", deadline_seconds=PATIENCE_SECONDS)
    cluster.wait_for_ticks(term=1)

    cluster.api.fault = ApiFault.NONE

    # Whoever comes first: the follower could look all the time, and saw a lease that nobody renewed.
    until(
        lambda: "lease_confirmed_again" in cluster.leader.log or cluster.term() == 2,
        deadline_seconds=PATIENCE_SECONDS,
        message="one of them holds the Lease",
    )
    cluster.wait_for_ticks(term=cluster.term())
    cluster.check_ledger()


def test_without_the_right_nobody_leads_until_it_is_back(cluster: Cluster) -> None:
    cluster.api.fault = ApiFault.FORBIDDEN
    lost = cluster.leader.wait_for_log("leader_lost", deadline_seconds=PATIENCE_SECONDS)
    said = cluster.leader.wait_for_log("lease_forbidden")

    cluster.api.fault = ApiFault.NONE

    cluster.wait_for_ticks(term=2)
    assert "reason=forbidden" in lost
    for words in ("verb=", "resource=", f"name={LEASE}", "subject=system:serviceaccount:default:dispatcher"):
        assert words in said
    cluster.check_ledger()


def test_a_deleted_lease_is_made_anew_and_the_term_goes_on(cluster: Cluster) -> None:
    cluster.api.delete(LEASE)

    until(lambda: cluster.api.holder(LEASE), deadline_seconds=PATIENCE_SECONDS, message="the Lease is there again")
    cluster.wait_for_ticks(term=1)
    assert cluster.term() == 1
    cluster.check_ledger()
