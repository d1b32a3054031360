"""What one plan says, case by case. test_ticks_ledger.py says what holds for all of them."""

from datetime import UTC, datetime, timedelta

import pytest

from sweephand.model.cron import Cron
from sweephand.model.schedule import Every, Schedule
from sweephand.model.ticks import (
    MAX_ROWS_PER_STEP,
    CatchUp,
    CatchUpMode,
    LeaderHistory,
    MissCause,
    Overlap,
    Period,
    Step,
    TickOutcome,
    TickPolicy,
    TickReason,
    TickState,
    plan,
)

ANCHOR = datetime(2026, 11, 30, 16, 0, tzinfo=UTC)
MINUTE = timedelta(seconds=60)
NONE, LATEST = CatchUp(CatchUpMode.NONE), CatchUp(CatchUpMode.LATEST)


def policy(
    *,
    catch_up: CatchUp = LATEST,
    overlap: Overlap = Overlap.SKIP,
    run_on_start: bool = False,
    schedule: Schedule | None = None,
) -> TickPolicy:
    return TickPolicy(schedule or Every(MINUTE), run_on_start, catch_up, overlap)


def state(*, next_tick: int = 1, is_paused: bool = False, run_requested_at: datetime | None = None) -> TickState:
    return TickState(ANCHOR, ANCHOR + next_tick * MINUTE, ANCHOR if is_paused else None, run_requested_at)


def leader(*, since: timedelta = timedelta(0), is_first_of_term: bool = False, previous: Period | None = None) -> LeaderHistory:
    return LeaderHistory(ANCHOR + since, is_first_of_term, previous)


def planned(the_policy: TickPolicy, the_state: TickState, history: LeaderHistory, *, seconds: float) -> Step:
    step = plan(the_policy, the_state, history, now=ANCHOR + timedelta(seconds=seconds))
    assert step is not None
    return step


def test_nothing_is_due_before_the_next_planned_time() -> None:
    assert plan(policy(), state(), leader(), now=ANCHOR + timedelta(seconds=59.9)) is None


@pytest.mark.parametrize("late", [0, 0.2, 5.0])
def test_a_tick_within_five_seconds_is_on_time(late: float) -> None:
    step = planned(policy(), state(), leader(), seconds=60 + late)

    assert step.due is not None
    assert (step.due.planned_at, step.due.reason, step.due.cause) == (ANCHOR + MINUTE, TickReason.TICK, None)
    assert step.skipped == ()
    assert step.next_tick_at == ANCHOR + 2 * MINUTE


@pytest.mark.parametrize(("late", "cause"), [(0.5, None), (0.51, MissCause.LATE)])
def test_a_tick_of_a_short_interval_is_late_after_half_of_it(late: float, cause: MissCause | None) -> None:
    every_second = policy(schedule=Every(timedelta(seconds=1)))

    step = planned(every_second, state(), leader(), seconds=60 + late)

    assert step.due is not None
    assert step.due.cause is cause


def test_a_leader_that_stopped_200_ms_before_a_tick_leaves_it_to_the_next_one_15_s_later() -> None:
    successor = leader(since=timedelta(seconds=74.8), is_first_of_term=True)

    latest = planned(policy(), state(), successor, seconds=75)
    at_start = planned(policy(run_on_start=True), state(), successor, seconds=75)
    never = planned(policy(catch_up=NONE), state(), successor, seconds=75)

    assert latest.due is not None
    assert (latest.due.reason, latest.due.cause) == (TickReason.CATCH_UP, MissCause.NO_LEADER)
    assert at_start.due is not None
    assert (at_start.due.reason, at_start.due.cause) == (TickReason.RUN_ON_START, MissCause.NO_LEADER)
    assert never.due is None
    assert [(row.outcome, row.cause) for row in never.skipped] == [(TickOutcome.MISSED, MissCause.NO_LEADER)]
    assert {step.next_tick_at for step in (latest, at_start, never)} == {ANCHOR + 2 * MINUTE}


def test_after_500_intervals_without_a_dispatcher_one_tick_runs_and_499_collapse() -> None:
    step = planned(policy(), state(), leader(since=500.2 * MINUTE), seconds=500.2 * 60)

    assert step.due is not None
    assert step.due.planned_at == ANCHOR + 500 * MINUTE
    assert step.due.reason is TickReason.CATCH_UP
    assert [row.outcome for row in step.skipped] == [TickOutcome.COLLAPSED] * 499
    assert sum(row.covers for row in step.skipped) == 499
    assert step.next_tick_at == ANCHOR + 501 * MINUTE


def test_a_day_of_a_cron_without_a_dispatcher_is_planned_at_once() -> None:
    minutely = policy(schedule=Cron("* * * * *", "Europe/Berlin"))

    step = planned(minutely, state(), leader(since=timedelta(days=1)), seconds=86_460)

    assert step.due is not None
    assert len(step.skipped) == MAX_ROWS_PER_STEP
    assert sum(row.covers for row in step.skipped) == 1440


def test_without_catching_up_only_the_ledger_tells() -> None:
    step = planned(policy(catch_up=NONE), state(), leader(since=4 * MINUTE), seconds=3.5 * 60)

    assert step.due is None
    assert [(row.planned_at, row.outcome) for row in step.skipped] == [
        (ANCHOR + number * MINUTE, TickOutcome.MISSED) for number in (1, 2, 3)
    ]


def test_all_of_three_catches_up_with_the_latest_three_oldest_first() -> None:
    of_three = policy(catch_up=CatchUp(CatchUpMode.ALL, most=3))
    history = leader(since=10.5 * MINUTE)

    first = planned(of_three, state(), history, seconds=10.5 * 60)
    second = planned(of_three, state(next_tick=9), history, seconds=10.5 * 60)
    third = planned(of_three, state(next_tick=10), history, seconds=10.5 * 60)

    dues = [step.due for step in (first, second, third)]
    assert [due.planned_at for due in dues if due] == [ANCHOR + number * MINUTE for number in (8, 9, 10)]
    assert [due.reason for due in dues if due] == [TickReason.CATCH_UP] * 3
    assert [row.outcome for row in first.skipped] == [TickOutcome.COLLAPSED] * 7
    assert (second.skipped, third.skipped) == ((), ())
    assert third.next_tick_at == ANCHOR + 11 * MINUTE


@pytest.mark.parametrize(
    ("overlap", "due_at", "outcomes"),
    [
        (Overlap.SKIP, None, [TickOutcome.SKIPPED_OVERLAP] * 2),
        (Overlap.QUEUE, ANCHOR + 3 * MINUTE, [TickOutcome.SKIPPED_OVERLAP]),
    ],
)
def test_ticks_that_came_while_the_one_before_ran_are_skipped_or_one_is_queued(
    overlap: Overlap, due_at: datetime | None, outcomes: list[TickOutcome]
) -> None:
    ran_for_150_s = Period(ANCHOR + MINUTE, ANCHOR + 3.5 * MINUTE)

    step = planned(policy(overlap=overlap), state(next_tick=2), leader(previous=ran_for_150_s), seconds=3.5 * 60)

    assert (None if step.due is None else step.due.planned_at) == due_at
    assert [row.outcome for row in step.skipped] == outcomes
    assert step.next_tick_at == ANCHOR + 4 * MINUTE


def test_catching_up_with_all_does_not_run_what_overlap_skips() -> None:
    of_five = policy(catch_up=CatchUp(CatchUpMode.ALL, most=5))
    ran_for_90_s = Period(ANCHOR + MINUTE, ANCHOR + 2.5 * MINUTE)

    step = planned(of_five, state(next_tick=2), leader(previous=ran_for_90_s), seconds=3.2 * 60)

    assert step.due is not None
    assert step.due.planned_at == ANCHOR + 3 * MINUTE
    assert [(row.planned_at, row.outcome) for row in step.skipped] == [(ANCHOR + 2 * MINUTE, TickOutcome.SKIPPED_OVERLAP)]


def test_a_scan_slower_than_its_interval_alternates_between_ok_and_skipped() -> None:
    outcomes: list[str] = []
    next_tick, now, previous = 1, 60.0, None
    while len(outcomes) < 6:
        step = planned(policy(), state(next_tick=next_tick), leader(previous=previous), seconds=now)
        outcomes += [row.outcome.value for row in step.skipped]
        if step.due is not None:
            outcomes.append("ok")
            previous = Period(ANCHOR + timedelta(seconds=now), ANCHOR + timedelta(seconds=now + 90))
            now += 90
        next_tick = (step.next_tick_at - ANCHOR) // MINUTE
        now = max(now, next_tick * 60.0) if not step.due else now

    assert outcomes == ["ok", "skipped_overlap"] * 3


def test_more_missed_ticks_than_a_step_may_write_share_a_row() -> None:
    step = planned(policy(), state(), leader(since=5_000.2 * MINUTE), seconds=5_000.2 * 60)

    assert len(step.skipped) == MAX_ROWS_PER_STEP
    assert (step.skipped[0].planned_at, step.skipped[0].covers) == (ANCHOR + MINUTE, 4_000)
    assert {row.covers for row in step.skipped[1:]} == {1}


def test_a_paused_sweep_moves_on_without_running_and_says_so() -> None:
    first_of_term = leader(since=3 * MINUTE, is_first_of_term=True)

    step = planned(policy(run_on_start=True), state(is_paused=True), first_of_term, seconds=2.5 * 60)

    assert step.due is None
    assert [(row.outcome, row.cause) for row in step.skipped] == [(TickOutcome.PAUSED, MissCause.PAUSED)] * 2
    assert step.next_tick_at == ANCHOR + 3 * MINUTE


@pytest.mark.parametrize("is_paused", [True, False])
def test_an_operators_request_runs_at_once_and_leaves_the_grid_alone(*, is_paused: bool) -> None:
    asked = ANCHOR + timedelta(seconds=17)

    step = planned(policy(), state(is_paused=is_paused, run_requested_at=asked), leader(), seconds=17.2)

    assert step.due is not None
    assert (step.due.planned_at, step.due.reason) == (asked, TickReason.MANUAL)
    assert (step.skipped, step.next_tick_at) == ((), ANCHOR + MINUTE)


def test_run_on_start_runs_the_present_period_and_is_not_missed_at_first_registration() -> None:
    first_ever = leader(since=timedelta(seconds=0.4), is_first_of_term=True)

    step = planned(policy(run_on_start=True), state(next_tick=0), first_ever, seconds=9)

    assert step.due is not None
    assert (step.due.planned_at, step.due.reason, step.due.cause) == (ANCHOR, TickReason.RUN_ON_START, None)
    assert step.next_tick_at == ANCHOR + MINUTE


def test_a_planned_time_of_a_schedule_that_has_changed_meanwhile_runs_once() -> None:
    hourly = policy(schedule=Every(timedelta(hours=1)))

    step = planned(hourly, state(next_tick=1), leader(), seconds=61)

    assert step.due is not None
    assert step.due.planned_at == ANCHOR + MINUTE
    assert step.skipped == ()
    assert step.next_tick_at == ANCHOR + 60 * MINUTE
