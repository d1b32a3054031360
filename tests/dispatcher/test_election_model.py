"""Elections under arbitrary faults, thousands of times: the properties that `sweephand.dispatcher.lease` promises.

Checked at every moment, by the referee of `ElectionWorld`: no transaction of a term commits after the first of a later one;
never two confirmed leaders; a leader stands down only for a reason that is real; nobody's liveness fails. And by steps: while
the API is away its leader misses no tick; once faults end there is a confirmed leader within a lease and a retry period.
"""

import logging
from collections.abc import Callable, Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from sweephand.model.lease import LeaseTimings
from tests.dispatcher.election_world import TICK_SECONDS, ElectionWorld, Replica
from tests.dispatcher.virtual_database import IDLE_TRANSACTION_SECONDS
from tests.dispatcher.virtual_lease import Fault

TIMINGS = LeaseTimings()
which = st.integers(0, 2)
then = st.sampled_from([0.0, 0.02, 0.1, 0.5, 1.0, 2.0, 2.5, 4.0, 5.0, 9.0, 10.5, 14.9, 16.0, 31.0])
SETTINGS = settings(
    max_examples=500,
    stateful_step_count=12,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


class Election(RuleBasedStateMachine):
    """Up to three replicas at a time, and all that may befall them."""

    has_watch = True
    size = 3

    @initialize(skews=st.lists(st.sampled_from([-3600.0, -7.0, 0.0, 7.0, 86400.0]), min_size=3, max_size=3))
    def begin(self, skews: list[float]) -> None:
        self.election = ElectionWorld(timings=TIMINGS, has_watch=self.has_watch)
        for skew in skews[: self.size]:
            self.election.start(skew_seconds=skew)

    def teardown(self) -> None:
        if hasattr(self, "election"):
            try:
                self.all_faults_end()
            finally:
                self.election.close()

    @property
    def alive(self) -> list[Replica]:
        return self.election.alive

    def pass_time(self, seconds: float) -> None:
        self.election.world.advance(seconds)

    def choose(self, index: int) -> Replica | None:
        return self.alive[index % len(self.alive)] if self.alive else None

    @rule(index=which, fault=st.sampled_from(Fault), then=then)
    def requests_fail(self, index: int, fault: Fault, then: float) -> None:
        if replica := self.choose(index):
            self.election.cut(fault, replica)
        self.pass_time(then)

    @rule(fault=st.sampled_from(Fault), then=then)
    def all_requests_fail(self, fault: Fault, then: float) -> None:
        self.election.cut(fault)
        self.pass_time(then)

    @rule(index=which, then=then)
    def requests_heal(self, index: int, then: float) -> None:
        if replica := self.choose(index):
            replica.client.heal()
        self.pass_time(then)

    @rule(index=which, then=then)
    def process_freezes(self, index: int, then: float) -> None:
        if replica := self.choose(index):
            self.election.freeze(replica)
        self.pass_time(then)

    @rule(then=then)
    def processes_thaw(self, then: float) -> None:
        self.election.thaw()
        self.pass_time(then)

    @rule(index=which, then=then)
    def process_is_killed(self, index: int, then: float) -> None:
        if replica := self.choose(index):
            self.election.kill(replica)
        self.pass_time(then)

    @rule(index=which, then=then)
    def process_is_stopped(self, index: int, then: float) -> None:
        if replica := self.choose(index):
            self.election.stop(replica)
        self.pass_time(then)

    @precondition(lambda self: len(self.alive) < self.size)
    @rule(skew=st.sampled_from([-7.0, 0.0, 7.0]), lease_seconds=st.sampled_from([15, 15, 15, 40]), then=then)
    def process_starts(self, skew: float, lease_seconds: int, then: float) -> None:
        timings = LeaseTimings(lease_seconds, TIMINGS.renew_deadline_seconds, TIMINGS.retry_period_seconds)
        self.election.start(skew_seconds=skew, timings=timings)
        self.pass_time(then)

    @rule(then=then)
    def lease_is_deleted(self, then: float) -> None:
        self.election.server.delete()
        self.pass_time(then)

    @rule(index=which, then=then)
    def database_is_away(self, index: int, then: float) -> None:
        if replica := self.choose(index):
            self.election.lose_database(replica)
        self.pass_time(then)

    @rule(then=then)
    def database_is_back(self, then: float) -> None:
        self.election.database.unreachable.clear()
        self.pass_time(then)

    @rule(index=which, then=then)
    def work_stalls(self, index: int, then: float) -> None:
        if replica := self.choose(index):
            self.election.stall(replica)
        self.pass_time(then)

    @rule(index=which, seconds=st.sampled_from([0.5, 4.0, 100.0]), then=then)
    def work_ends_slowly(self, index: int, seconds: float, then: float) -> None:
        if replica := self.choose(index):
            self.election.slow_down(replica, ending_seconds=seconds)
        self.pass_time(then)

    @precondition(lambda self: self.steady_leader() is not None)
    @rule(
        fault=st.sampled_from([Fault.LOST, Fault.RESET, Fault.SERVER_ERROR, Fault.UNAUTHORIZED]),
        seconds=st.sampled_from([20, 45, 90]),
    )
    def api_is_away(self, fault: Fault, seconds: int) -> None:
        leader = self.steady_leader()
        self.election.heal()
        self.election.cut(fault)
        commits = len(self.election.database.commits)

        self.election.world.advance(seconds)

        times = [commit.at for commit in self.election.database.commits[commits:] if leader and commit.by == leader.name]
        assert len(times) >= int(seconds / (TICK_SECONDS + 0.1)), f"{len(times)} ticks in {seconds} s without the API"
        assert leader
        assert leader.elector.status.is_unconfirmed
        assert leader.observer.is_unconfirmed
        self.election.heal()

    @rule()
    def all_faults_end(self) -> None:
        self.election.database.unreachable.clear()
        self.election.thaw()
        self.election.heal()
        for replica in self.alive:
            replica.dispatcher.is_stalled = False
        self.election.world.advance(0.0)
        if all(self.is_leaving(replica) for replica in self.alive):
            self.election.start()
        lease_seconds = max(replica.timings.lease_seconds for replica in self.election.replicas)
        # Work that ends slowly is no fault that ends: a leader that is told to stop keeps its lease meanwhile, as long as it may.
        slow = [replica.timings.ending_seconds for replica in self.election.replicas if "slow end" in replica.suffered]
        ending_seconds = max(slow, default=0.0)
        recovery_seconds = lease_seconds + ending_seconds + 1.2 * TIMINGS.retry_period_seconds + TIMINGS.request_seconds + 0.1

        # What was lost when the faults ended is answered by nobody: it has to time out first.
        self.wait_for(self.election.confirmed, seconds=recovery_seconds, message="a confirmed leader")
        # That leader may still have to end by work that failed before, or wait for a transaction that nobody goes on with.
        commits = len(self.election.database.commits)
        self.wait_for(
            lambda: self.election.database.commits[commits:],
            seconds=IDLE_TRANSACTION_SECONDS + TIMINGS.ending_seconds + recovery_seconds,
            message="a dispatch",
        )

    def wait_for(self, condition: Callable[[], object], *, seconds: float, message: str) -> None:
        deadline = self.election.world.now + seconds
        while not condition():
            assert self.election.world.now < deadline, f"{message}: not within {seconds:g} s after all faults ended"
            self.election.world.advance(0.5)

    def steady_leader(self) -> Replica | None:
        """Return the confirmed leader if nothing but the API can disturb it, and it has begun to tick."""
        for replica in self.election.confirmed():
            dispatcher = replica.dispatcher
            is_ticking = 0 < dispatcher.term == self.election.database.term and not dispatcher.is_stalled
            is_reaching = replica.name not in self.election.database.unreachable
            is_answered = replica.elector.status.last_error is None
            if replica.is_running and is_ticking and is_reaching and is_answered and "stop" not in replica.suffered:
                return replica
        return None

    def is_leaving(self, replica: Replica) -> bool:
        return "stop" in replica.suffered or replica.dispatcher.ending_seconds > TIMINGS.ending_seconds


class TwoWithWatch(Election):
    size = 2


class TwoWithoutWatch(Election):
    has_watch = False
    size = 2


class ThreeWithoutWatch(Election):
    has_watch = False


for machine in (Election, TwoWithWatch, TwoWithoutWatch, ThreeWithoutWatch):
    machine.TestCase.settings = SETTINGS

TestThreeWithWatch = pytest.mark.timeout(600)(Election.TestCase)
TestTwoWithWatch = pytest.mark.timeout(600)(TwoWithWatch.TestCase)
TestTwoWithoutWatch = pytest.mark.timeout(600)(TwoWithoutWatch.TestCase)
TestThreeWithoutWatch = pytest.mark.timeout(600)(ThreeWithoutWatch.TestCase)
