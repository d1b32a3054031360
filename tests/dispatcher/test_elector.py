"""What an elector does, step by step, in virtual time; `test_election_model` then does it all in any order."""

import logging
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest
import structlog

from sweephand.dispatcher.lease import Moment
from sweephand.model.errors import SettingsError
from sweephand.model.lease import LeaseRecord, LeaseTimings, StoredLease
from sweephand.telemetry.labels import AcquiredHow, LostReason
from tests.dispatcher.election_world import ElectionWorld, Replica
from tests.dispatcher.virtual_lease import Fault

TIMINGS = LeaseTimings()


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture(params=[True, False], ids=["watch", "polling"])
def election(request: pytest.FixtureRequest) -> Iterator[ElectionWorld]:
    world = ElectionWorld(timings=TIMINGS, has_watch=bool(request.param))
    yield world
    world.close()


@pytest.fixture
def watched() -> Iterator[ElectionWorld]:
    world = ElectionWorld(timings=TIMINGS, has_watch=True)
    yield world
    world.close()


@pytest.fixture
def polled() -> Iterator[ElectionWorld]:
    world = ElectionWorld(timings=TIMINGS, has_watch=False)
    yield world
    world.close()


def leader_of(election: ElectionWorld) -> Replica:
    (leader,) = election.confirmed()
    return leader


def leader_and_follower(election: ElectionWorld) -> tuple[Replica, Replica]:
    leader = election.start()
    election.world.advance(0.5)
    follower = election.start()
    election.world.advance(5.0)
    assert leader_of(election) is leader
    return leader, follower


def test_the_first_to_come_makes_the_lease_and_leads(election: ElectionWorld) -> None:
    leader, follower = leader_and_follower(election)

    assert leader.observer.gained[0][1] is AcquiredHow.CREATED
    assert follower.elector.status.holder == leader.name
    assert not follower.elector.status.is_leader
    record = election.server.get().record
    assert (record.holder, record.lease_seconds, record.transitions) == (leader.name, 15, 0)
    assert record.renewed_at is not None
    assert record.acquired_at is not None
    assert record.renewed_at > record.acquired_at


def test_a_killed_leader_is_followed_within_a_lease_and_a_retry_period(election: ElectionWorld) -> None:
    leader, follower = leader_and_follower(election)

    election.kill(leader)
    election.world.advance(TIMINGS.lease_seconds + TIMINGS.retry_period_seconds)

    assert leader_of(election) is follower
    assert follower.observer.gained[0][1] is AcquiredHow.EXPIRED
    assert election.server.get().record.transitions == 1


def test_a_follower_takes_over_at_the_very_moment_of_expiry(polled: ElectionWorld) -> None:
    leader, follower = leader_and_follower(polled)
    polled.kill(leader)
    killed_at = polled.world.now

    polled.world.advance(20)

    seconds = follower.observer.gained[0][0] - killed_at
    # It saw the last renewal at most 2.2 s late, and then waits exactly a lease.
    assert 13.0 <= seconds <= 17.3
    assert (seconds - 15.0) <= 2.3


def test_a_fresh_process_waits_a_whole_lease_whatever_the_record_says_of_its_age(polled: ElectionWorld) -> None:
    leader = polled.start(skew_seconds=-86400.0)
    polled.world.advance(3.0)
    polled.kill(leader)
    polled.world.advance(300.0)

    fresh = polled.start()
    polled.world.advance(14.9)
    assert not fresh.elector.status.is_leader
    polled.world.advance(0.3)

    assert fresh.elector.status.is_confirmed


def test_a_follower_waits_the_duration_in_the_record_not_its_own(polled: ElectionWorld) -> None:
    leader = polled.start(timings=LeaseTimings(60, renew_deadline_seconds=10, retry_period_seconds=2))
    polled.world.advance(1.0)
    follower = polled.start()
    polled.world.advance(3.0)

    polled.kill(leader)
    polled.world.advance(50.0)
    assert not follower.elector.status.is_leader
    polled.world.advance(12.0)

    assert follower.elector.status.is_confirmed


def test_a_released_lease_is_taken_at_once(watched: ElectionWorld) -> None:
    leader, follower = leader_and_follower(watched)

    watched.stop(leader)
    watched.world.advance(0.2)

    assert leader.main.done()
    assert leader_of(watched) is follower
    assert follower.observer.gained[0][1] is AcquiredHow.RELEASED
    assert leader.observer.losses[0][1] is LostReason.SHUTDOWN


def test_the_work_ends_before_the_release_and_the_lease_is_renewed_meanwhile(polled: ElectionWorld) -> None:
    leader, follower = leader_and_follower(polled)
    polled.slow_down(leader, ending_seconds=4.5)
    before = polled.server.get()

    polled.stop(leader)
    polled.world.advance(4.4)
    meanwhile = polled.server.get()
    polled.world.advance(0.2)

    assert meanwhile.record.holder == leader.name
    assert int(meanwhile.version) >= int(before.version) + 2
    released = polled.server.get().record
    assert (released.holder, released.lease_seconds, released.transitions) == ("", 1, 0)
    assert not follower.elector.status.is_leader


def test_a_follower_that_stops_does_not_wait_long_for_an_answer(polled: ElectionWorld) -> None:
    _, follower = leader_and_follower(polled)
    polled.cut(Fault.LOST, follower)
    polled.world.advance(2.5)

    polled.stop(follower)
    polled.world.advance(0.6)

    assert follower.main.done()


def test_one_who_stops_gains_nothing_any_more(polled: ElectionWorld) -> None:
    replica = polled.start()
    polled.cut(Fault.SLOW)
    polled.world.advance(0.1)

    polled.stop(replica)
    polled.world.advance(3.0)

    assert replica.main.done()
    assert replica.observer.gained == []
    assert polled.server.holders == []


def test_one_who_is_not_sure_to_hold_it_never_releases_it(polled: ElectionWorld) -> None:
    leader, _ = leader_and_follower(polled)
    polled.cut(Fault.UNANSWERED, leader)
    polled.world.advance(11.0)
    assert leader.elector.status.is_unconfirmed
    leader.client.heal()

    polled.stop(leader)
    polled.world.advance(0.5)

    assert leader.main.done()
    assert polled.server.get().record.holder == leader.name


def test_a_renewal_that_landed_unanswered_does_not_hinder_the_release(polled: ElectionWorld) -> None:
    leader, _ = leader_and_follower(polled)
    polled.cut(Fault.UNANSWERED, leader)
    polled.world.advance(2.5)
    leader.client.heal()

    polled.stop(leader)
    polled.world.advance(1.0)

    assert polled.server.get().record.holder == ""


@pytest.mark.parametrize(
    "fault", [Fault.LOST, Fault.UNANSWERED, Fault.RESET, Fault.RESET_AFTER, Fault.SERVER_ERROR, Fault.UNAUTHORIZED]
)
def test_nobody_answers_and_the_leader_goes_on_unconfirmed(election: ElectionWorld, fault: Fault) -> None:
    leader, _ = leader_and_follower(election)
    election.cut(fault)
    commits = len(election.database.commits)

    election.world.advance(9.0 - TIMINGS.retry_period_seconds)
    assert leader.elector.status.is_confirmed
    election.world.advance(300.0)

    assert leader.elector.status.is_unconfirmed
    assert leader.observer.is_unconfirmed
    assert leader.elector.status.last_error is not None
    assert leader.elector.is_live() is None
    assert leader.observer.losses == []
    assert len(election.database.commits) - commits > 180

    election.heal()
    election.world.advance(TIMINGS.request_seconds + TIMINGS.retry_period_seconds)
    assert leader_of(election) is leader
    assert [leader.observer.is_unconfirmed, len(leader.observer.gained)] == [False, 1]


def test_trust_counts_from_the_start_of_the_write(polled: ElectionWorld) -> None:
    leader, _ = leader_and_follower(polled)
    polled.cut(Fault.SLOW, leader)
    polled.world.advance(7.0)
    assert leader.elector.status.is_confirmed
    # The last write that was answered began 2.4 s and more before its answer.
    polled.cut(Fault.LOST, leader)
    answered = polled.server.holders[-1][0]

    polled.world.advance(answered + 1.2 + 7.7 - polled.world.now)
    assert leader.elector.status.is_unconfirmed


def test_an_unconfirmed_leader_stands_down_when_another_took_the_lease(election: ElectionWorld) -> None:
    leader, follower = leader_and_follower(election)
    election.cut(Fault.LOST, leader)
    election.world.advance(20.0)
    assert leader_of(election) is follower

    # The fence has told it before the API server does.
    assert leader.observer.losses[0][1] is LostReason.FENCED
    assert election.database.commits[-1].by == follower.name


def test_a_refusal_that_outlasts_the_deadline_ends_the_lead(election: ElectionWorld) -> None:
    leader, _ = leader_and_follower(election)
    election.cut(Fault.FORBIDDEN, leader)

    election.world.advance(7.5)
    assert leader.elector.status.is_confirmed
    election.world.advance(5.0)

    assert not leader.elector.status.is_leader
    assert leader.observer.losses[0][1] is LostReason.FORBIDDEN
    assert leader.elector.is_live() is None
    assert "me may not update leases 'x'" in (leader.elector.status.last_error or "")


def test_a_write_that_landed_unanswered_is_found_and_kept(polled: ElectionWorld) -> None:
    replica = polled.start()
    polled.cut(Fault.UNANSWERED, replica)
    polled.world.advance(0.1)
    polled.cut(Fault.NONE, replica)
    polled.world.advance(10.0)

    assert replica.elector.status.is_confirmed
    assert replica.observer.gained[0][1] in (AcquiredHow.RESUMED, AcquiredHow.CREATED)
    assert polled.server.get().record.transitions == 0


def test_a_deleted_lease_is_made_anew_by_its_leader_and_left_alone_by_the_others(election: ElectionWorld) -> None:
    leader, follower = leader_and_follower(election)

    election.server.delete()
    election.world.advance(3.0)

    assert leader_of(election) is leader
    assert follower.observer.gained == []
    assert len(leader.observer.gained) == 1
    assert election.server.get().record.holder == leader.name


def test_a_deleted_lease_of_a_dead_leader_is_taken_after_a_lease(election: ElectionWorld) -> None:
    leader, follower = leader_and_follower(election)
    election.kill(leader)
    election.server.delete()

    election.world.advance(14.5)
    assert not follower.elector.status.is_leader
    election.world.advance(3.5)

    assert leader_of(election) is follower
    assert follower.observer.gained[0][1] is AcquiredHow.CREATED


def test_an_unconfirmed_leader_does_not_make_a_deleted_lease_anew(polled: ElectionWorld) -> None:
    leader, _ = leader_and_follower(polled)
    polled.cut(Fault.LOST)
    polled.world.advance(20.0)
    polled.server.delete()
    leader.client.heal()
    polled.world.advance(7.0)

    with pytest.raises(Exception, match="no lease"):
        polled.server.get()
    assert leader.elector.status.is_unconfirmed


def test_work_that_raises_gives_the_lease_up_and_contends_again(watched: ElectionWorld) -> None:
    leader, follower = leader_and_follower(watched)
    watched.lose_database(leader)

    watched.world.advance(2.0)

    assert leader.observer.losses[0][1] is LostReason.ERROR
    assert leader_of(watched) is follower
    assert not leader.main.done()


def test_alone_it_waits_a_retry_period_after_work_that_raised(watched: ElectionWorld) -> None:
    leader = watched.start()
    watched.world.advance(5.0)
    watched.lose_database(leader)
    watched.world.advance(60.0)

    gained = [at for at, _ in leader.observer.gained]
    assert len(gained) > 10
    assert min(after - before for before, after in pairwise(gained)) >= TIMINGS.retry_period_seconds


def test_work_without_progress_loses_the_lead_within_thirty_seconds(watched: ElectionWorld) -> None:
    leader, follower = leader_and_follower(watched)
    watched.stall(leader)

    watched.world.advance(30.0)

    assert leader.observer.losses[0][1] is LostReason.STUCK
    assert leader_of(watched) is follower


def test_work_that_will_not_end_ends_the_process(watched: ElectionWorld) -> None:
    leader, follower = leader_and_follower(watched)
    watched.slow_down(leader, ending_seconds=100.0)
    watched.stall(leader)  # so that it is not the fence that tells it
    watched.cut(Fault.LOST, leader)
    watched.world.advance(16.0)
    assert leader_of(watched) is follower
    leader.client.heal()

    watched.world.advance(TIMINGS.request_seconds + TIMINGS.ending_seconds + 0.1)

    assert leader.observer.losses[0][1] is LostReason.TAKEN
    assert leader.was_aborted


def test_a_fenced_leader_ends_at_once_and_does_not_release(watched: ElectionWorld) -> None:
    leader, _ = leader_and_follower(watched)
    watched.database.term += 1
    before = watched.server.get()

    watched.world.advance(1.6)

    assert leader.observer.losses[0][1] is LostReason.FENCED
    assert watched.server.get().record.holder == leader.name
    assert watched.server.get().record.transitions == before.record.transitions


def test_a_fenced_leader_leads_again_under_a_new_term_if_the_lease_is_still_its_own(watched: ElectionWorld) -> None:
    leader, _ = leader_and_follower(watched)
    watched.database.term += 1

    watched.world.advance(5.0)

    assert leader.observer.gained[-1][1] is AcquiredHow.RESUMED
    assert leader.dispatcher.term == watched.database.term == 3


def test_a_thawed_leader_asks_the_fence_before_anything_else(watched: ElectionWorld) -> None:
    leader, follower = leader_and_follower(watched)
    watched.stall(leader)  # so that only the elector can find out
    watched.freeze(leader)
    watched.world.advance(25.0)
    assert leader_of(watched) is follower

    watched.thaw()
    watched.world.advance(0.0)

    assert not leader.elector.status.is_leader
    assert leader.observer.losses[0][1] is LostReason.FROZEN


def test_a_thawed_leader_whose_term_stands_goes_on(watched: ElectionWorld) -> None:
    leader = watched.start()
    watched.world.advance(5.0)
    watched.freeze(leader)
    watched.world.advance(30.0)

    watched.thaw()
    watched.world.advance(3.0)

    assert leader.elector.status.is_confirmed
    assert leader.observer.losses == []


def test_the_flag_goes_before_the_work(watched: ElectionWorld) -> None:
    leader, _ = leader_and_follower(watched)
    watched.slow_down(leader, ending_seconds=4.0)
    taken = watched.server.get()
    watched.server.replace(taken, LeaseRecord("intruder", 15, acquired_at=None, renewed_at=None, transitions=9))

    watched.world.advance(0.2)

    assert not leader.elector.status.is_confirmed
    assert not leader.elector.status.is_leader


def test_a_sleep_of_the_machine_counts_as_time() -> None:
    asleep_for_a_minute = Moment(100.0, boot=1000.0).elapsed(until=Moment(101.0, boot=1061.0))

    assert asleep_for_a_minute == 61.0


def test_a_frozen_leader_is_not_confirmed_whoever_asks(watched: ElectionWorld) -> None:
    leader, _ = leader_and_follower(watched)
    watched.freeze(leader)

    watched.world.advance(10.1)

    assert not leader.elector.status.is_confirmed
    assert leader.elector.is_live() is None
    watched.world.advance(20.0)
    assert "stood still" in (leader.elector.is_live() or "")


def test_our_own_writes_wake_nobody(watched: ElectionWorld) -> None:
    leader = watched.start()
    watched.world.advance(60.0)

    assert len(watched.server.holders) <= 60.0 / TIMINGS.retry_period_seconds + 2
    assert leader.elector.status.is_confirmed


def test_late_word_of_our_own_writes_wakes_nobody_either(watched: ElectionWorld) -> None:
    leader = watched.start()
    watched.world.advance(1.0)
    versions = [watched.server.get().version]
    for _ in range(3):
        watched.world.advance(2.0)
        versions.append(watched.server.get().version)
    writes = len(watched.server.holders)

    for version in versions[:-1]:
        leader.process.call(partial(leader.elector.wake, version))
        watched.world.advance(0.1)

    assert len(watched.server.holders) <= writes + 1


def test_a_change_by_somebody_else_is_looked_at_at_once(watched: ElectionWorld) -> None:
    leader, _ = leader_and_follower(watched)
    taken = watched.server.get()
    watched.server.replace(taken, LeaseRecord("intruder", 15, acquired_at=None, renewed_at=None, transitions=9))

    watched.world.advance(0.2)

    assert leader.observer.losses[0][1] is LostReason.TAKEN


def test_a_record_without_a_duration_is_trusted_as_long_as_our_own(polled: ElectionWorld) -> None:
    polled.server.create(LeaseRecord("somebody", 0, acquired_at=None, renewed_at=None, transitions=0))
    replica = polled.start()

    polled.world.advance(14.9)
    assert not replica.elector.status.is_leader
    polled.world.advance(0.3)

    assert replica.elector.status.is_confirmed


def test_an_acquisition_keeps_the_moment_of_the_first_write(polled: ElectionWorld) -> None:
    polled.start()
    polled.world.advance(1.0)
    first: StoredLease = polled.server.get()
    polled.world.advance(20.0)

    assert polled.server.get().record.acquired_at == first.record.acquired_at
    assert polled.server.get().record.renewed_at != first.record.renewed_at


@pytest.mark.parametrize(
    ("lease", "deadline", "retry", "names"),
    [
        (10, 10.0, 2.0, ("lease_seconds=10", "renew_deadline_seconds=10")),
        (15, 2.4, 2.0, ("renew_deadline_seconds=2.4", "retry_period_seconds=2")),
        (0, 10.0, 2.0, ("lease_seconds=0",)),
        (15, float("nan"), 2.0, ("renew_deadline_seconds=nan",)),
        (15, 10.0, 0.0, ("retry_period_seconds=0",)),
    ],
)
def test_durations_that_do_not_fit_are_named_with_their_values(
    lease: int, deadline: float, retry: float, names: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError) as caught:
        LeaseTimings(lease, renew_deadline_seconds=deadline, retry_period_seconds=retry)

    for name in names:
        assert name in str(caught.value)
