"""Whatever happens to clocks, leaders and operators: each planned time has one row in the ledger, and never two."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.model.cron import Cron
from sweephand.model.schedule import Every, Schedule, Shifted
from sweephand.model.ticks import (
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

START = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # half an hour before Berlin's clocks go back
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Row:
    """Be a row of the ledger; `reason` None stands for a tick that did not run."""

    planned_at: datetime
    covers: int
    reason: TickReason | None
    outcome: TickOutcome | None = None


@dataclass(slots=True)
class World:
    """Be a database's clock, its sweep row and its ledger, with one leader after another."""

    policy: TickPolicy
    now: datetime
    state: TickState
    history: LeaderHistory
    first: datetime
    ledger: list[Row] = field(default_factory=list)
    dispatch_seconds: float = 0.0

    @classmethod
    def begin(cls, policy: TickPolicy) -> "World":
        first = policy.schedule.latest(START, anchor=START)
        state = TickState(anchor_at=START, next_tick_at=first, paused_at=None, run_requested_at=None)
        return cls(policy, START, state, LeaderHistory(since=START, is_first_of_term=True), first)

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.settle()

    def away(self, seconds: float) -> None:
        """Let time pass without a leader; then one takes over."""
        self.now += timedelta(seconds=seconds)
        self.history = LeaderHistory(since=self.now, is_first_of_term=True)
        self.settle()

    def database_down(self, seconds: float) -> None:
        down = Period(self.now, self.now + timedelta(seconds=seconds))
        self.now = down.end
        self.history = replace(self.history, database_down=down)
        self.settle()

    def pause(self, seconds: float) -> None:
        self.state = replace(self.state, paused_at=self.now)
        self.advance(seconds)
        self.state = replace(self.state, paused_at=None)

    def request(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.state = replace(self.state, run_requested_at=self.now)
        self.settle()

    def slow(self, seconds: float) -> None:
        self.dispatch_seconds = seconds
        self.settle()

    def settle(self) -> None:
        """Do what the loop does until nothing is due: at most a dispatch that takes longer than its interval goes on."""
        for _ in range(8):
            step = plan(self.policy, self.state, self.history, now=self.now)
            if step is None:
                self.history = replace(self.history, is_first_of_term=False)
                return
            self._carry_out(step)

    def _carry_out(self, step: Step) -> None:
        assert step.due is not None or step.next_tick_at > self.state.next_tick_at
        self.ledger += [Row(skipped.planned_at, skipped.covers, None, skipped.outcome) for skipped in step.skipped]
        requested = self.state.run_requested_at
        if step.due is not None:
            self.ledger.append(Row(step.due.planned_at, 1, step.due.reason))
            started = self.now
            self.now += timedelta(seconds=self.dispatch_seconds)
            self.history = replace(self.history, previous_dispatch=Period(started, self.now))
            requested = None if step.due.reason is TickReason.MANUAL else requested
        self.state = replace(self.state, next_tick_at=step.next_tick_at, run_requested_at=requested)
        self.history = replace(self.history, is_first_of_term=False)

    def planned(self) -> list[datetime]:
        return sorted(self.policy.schedule.between(self.first, self.state.next_tick_at - MICROSECOND, anchor=START))

    def covered(self) -> list[datetime]:
        grid = self.planned()
        positions = {moment: position for position, moment in enumerate(grid)}
        found: list[datetime] = []
        for row in self.ledger:
            if row.reason is not TickReason.MANUAL:
                begin = positions[row.planned_at]
                found += grid[begin : begin + row.covers]
        return sorted(found)

    def dispatched(self) -> list[Row]:
        return [row for row in self.ledger if row.reason is not None]


schedules: st.SearchStrategy[Schedule] = st.sampled_from(
    [
        Every(timedelta(seconds=60)),
        Every(timedelta(seconds=1)),
        Shifted(Every(timedelta(seconds=60)), timedelta(seconds=12.5)),
        Cron("*/5 * * * *", "Europe/Berlin"),
        Cron("0,30 2 * * *", "Europe/Berlin"),
    ]
)
catch_ups = st.sampled_from([CatchUp(CatchUpMode.NONE), CatchUp(CatchUpMode.LATEST)]) | st.builds(
    CatchUp, st.just(CatchUpMode.ALL), st.integers(1, 5)
)
policies = st.builds(TickPolicy, schedules, st.booleans(), catch_ups, st.sampled_from(Overlap))
seconds = st.sampled_from([0.0, 0.3, 1.0, 4.9, 15.0, 59.8, 60.0, 600.0]) | st.floats(0, 2_000)
events = st.lists(
    st.tuples(st.sampled_from(["advance", "away", "database_down", "pause", "request"]), seconds)
    | st.tuples(st.just("slow"), st.sampled_from([0.0, 0.4, 1.5, 70.0])),
    max_size=15,
)


def live(world: World, happened: list[tuple[str, float]]) -> None:
    for event, length in happened:
        match event:
            case "advance":
                world.advance(length)
            case "away":
                world.away(length)
            case "database_down":
                world.database_down(length)
            case "pause":
                world.pause(length)
            case "request":
                world.request(length)
            case _:
                world.slow(length)


@settings(deadline=None, max_examples=60)
@given(policy=policies, happened=events)
def test_each_planned_time_has_exactly_one_row(policy: TickPolicy, happened: list[tuple[str, float]]) -> None:
    world = World.begin(policy)
    world.settle()

    live(world, happened)

    assert world.covered() == world.planned()


@settings(deadline=None, max_examples=40)
@given(policy=policies, happened=events)
def test_requests_of_operators_each_run_once(policy: TickPolicy, happened: list[tuple[str, float]]) -> None:
    world = World.begin(policy)

    live(world, happened)
    world.slow(0.0)

    manual = [row for row in world.ledger if row.reason is TickReason.MANUAL]
    assert len(manual) == sum(1 for event, _ in happened if event == "request")


@settings(deadline=None, max_examples=40)
@given(policy=policies, away=st.floats(0, 5_000), term_begins=st.booleans())
def test_no_policy_makes_up_for_more_than_it_says(policy: TickPolicy, away: float, *, term_begins: bool) -> None:
    world = World.begin(policy)
    world.settle()
    before = len(world.dispatched())

    if term_begins:
        world.away(away)
    else:
        world.database_down(away)

    made_up = world.dispatched()[before:]
    most = policy.catch_up.most if policy.catch_up.mode is CatchUpMode.ALL else 1
    assert len(made_up) <= most
    if policy.catch_up.mode is CatchUpMode.NONE:
        assert all(row.reason is not TickReason.CATCH_UP for row in made_up)
    assert sum(row.reason is TickReason.RUN_ON_START for row in made_up) <= (1 if policy.run_on_start and term_begins else 0)


@settings(deadline=None, max_examples=40)
@given(policy=policies, away=st.floats(0, 5_000))
def test_the_latest_tick_is_always_among_those_made_up_for(policy: TickPolicy, away: float) -> None:
    world = World.begin(policy)
    world.settle()

    world.away(away)

    latest = world.planned()[-1]
    runs = policy.run_on_start or policy.catch_up.mode is not CatchUpMode.NONE
    assert not runs or latest in [row.planned_at for row in world.dispatched()]


def test_a_dispatcher_restarted_every_20_s_for_10_min_ticks_ten_times_on_the_grid() -> None:
    policy = TickPolicy(Every(timedelta(seconds=60)), True, CatchUp(CatchUpMode.LATEST), Overlap.SKIP)  # noqa: FBT003
    world = World.begin(policy)
    world.settle()

    for _ in range(30):
        world.advance(17.8)
        world.away(2.2)  # the hand-over

    ticks = [row for row in world.dispatched() if row.reason is not TickReason.MANUAL]
    assert 9 <= len(ticks) <= 11
    assert all((row.planned_at - START) % timedelta(seconds=60) == timedelta(0) for row in ticks)


def test_missing_causes_are_told_apart() -> None:
    policy = TickPolicy(Every(timedelta(seconds=60)), False, CatchUp(CatchUpMode.NONE), Overlap.SKIP)  # noqa: FBT003
    state = TickState(anchor_at=START, next_tick_at=START + timedelta(seconds=60), paused_at=None, run_requested_at=None)
    now = START + timedelta(seconds=260)
    history = LeaderHistory(
        since=START + timedelta(seconds=90),
        is_first_of_term=False,
        database_down=Period(START + timedelta(seconds=110), START + timedelta(seconds=130)),
    )

    step = plan(policy, state, history, now=now)

    assert step is not None
    assert [(skipped.cause, skipped.outcome) for skipped in step.skipped] == [
        (MissCause.NO_LEADER, TickOutcome.MISSED),
        (MissCause.DB_DOWN, TickOutcome.MISSED),
        (MissCause.LATE, TickOutcome.MISSED),
        (MissCause.LATE, TickOutcome.MISSED),
    ]
