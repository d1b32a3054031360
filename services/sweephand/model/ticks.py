"""Decide which planned ticks of a sweep run now and what the ledger says of the others.

Pure: the table's moments and the database's clock come in, one step comes out. The loop carries out the step in one
transaction and plans again, until nothing is due. Every planned time before `next_tick_at` has its row in the ledger.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sweephand.model.schedule import Schedule

ON_TIME_SECONDS = 5.0
MAX_ROWS_PER_STEP = 1_000


class TickReason(StrEnum):
    """Say why a tick ran; the value is what the ledger and the metrics carry."""

    TICK = "tick"
    RUN_ON_START = "run_on_start"
    CATCH_UP = "catch_up"
    MANUAL = "manual"


class TickOutcome(StrEnum):
    """Say what became of a planned tick; the value is what the ledger and the metrics carry."""

    OK = "ok"
    EMPTY = "empty"
    ERROR = "error"
    PAUSED = "paused"
    SKIPPED_OVERLAP = "skipped_overlap"
    FENCED = "fenced"
    MISSED = "missed"
    COLLAPSED = "collapsed"


class MissCause(StrEnum):
    """Say why a tick did not run at its planned time, whether or not a later one made up for it."""

    NO_LEADER = "no_leader"
    DB_DOWN = "db_down"
    LATE = "late"
    PAUSED = "paused"


class CatchUpMode(StrEnum):
    """Say what becomes of ticks that nobody ran: nothing, the latest of them, or up to a number of them."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Hold a catch-up policy; `most` counts only for ALL: how many of the latest missed ticks run, oldest first."""

    mode: CatchUpMode
    most: int = 1

    def __str__(self) -> str:
        """Return `none`, `latest` or for example `all(5)`; the sweep table stores it."""
        return f"all({self.most})" if self.mode is CatchUpMode.ALL else self.mode.value


class Overlap(StrEnum):
    """Say what becomes of ticks that come due while the sweep's previous tick still runs."""

    SKIP = "skip"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class TickPolicy:
    """Hold what a sweep's author chose about its ticks."""

    schedule: Schedule
    run_on_start: bool
    catch_up: CatchUp
    overlap: Overlap


@dataclass(frozen=True, slots=True)
class TickState:
    """Hold what the sweep's row says, by the database's clock. `run_requested_at` is set by `sweeps run`."""

    anchor_at: datetime
    next_tick_at: datetime
    paused_at: datetime | None
    run_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class Period:
    """Be a span of time by the database's clock, both ends included."""

    start: datetime
    end: datetime

    def __contains__(self, moment: datetime) -> bool:
        """Tell whether `moment` lies in the span."""
        return self.start <= moment <= self.end


@dataclass(frozen=True, slots=True)
class LeaderHistory:
    """Hold what this leader knows of itself, to tell why a tick is late.

    `since` is when its term began; `previous_dispatch` when this sweep's last dispatch ran in this term; `database_down` the
    last time in this term that the database could not be reached.
    """

    since: datetime
    is_first_of_term: bool
    previous_dispatch: Period | None = None
    database_down: Period | None = None


@dataclass(frozen=True, slots=True)
class SkippedTick:
    """Be a planned tick that does not run: one ledger row, which stands for `covers` planned times from planned_at on."""

    planned_at: datetime
    outcome: TickOutcome
    cause: MissCause | None
    covers: int = 1


@dataclass(frozen=True, slots=True)
class DueTick:
    """Be the tick to dispatch; `cause` is None when it is on time."""

    planned_at: datetime
    reason: TickReason
    cause: MissCause | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """Be one transaction's worth: ledger rows for skipped ticks, at most one dispatch, and the next planned time."""

    skipped: tuple[SkippedTick, ...]
    due: DueTick | None
    next_tick_at: datetime


def plan(policy: TickPolicy, state: TickState, history: LeaderHistory, *, now: datetime) -> Step | None:
    """Return the next step for a sweep, or None when nothing is due at `now` (the database's clock)."""
    if state.run_requested_at is not None:
        return Step(skipped=(), due=DueTick(state.run_requested_at, TickReason.MANUAL), next_tick_at=state.next_tick_at)
    if state.next_tick_at > now:
        return None
    planned = _planned(policy.schedule, state, now)
    after = policy.schedule.after(now, anchor=state.anchor_at)
    if state.paused_at is not None:
        return Step(skipped=_skip(planned, TickOutcome.PAUSED, lambda _: MissCause.PAUSED), due=None, next_tick_at=after)
    return _Due(policy, state, history, now).step(planned, after)


@dataclass(frozen=True, slots=True)
class _Slots:
    """Be the planned times that are due, latest first; `older` counts those before the last one listed, from `oldest` on."""

    latest_first: Sequence[datetime]
    oldest: datetime
    older: int


@dataclass(frozen=True, slots=True)
class _Due:
    """Apply the policy to the planned times that have come while the sweep is not paused."""

    policy: TickPolicy
    state: TickState
    history: LeaderHistory
    now: datetime

    def step(self, planned: _Slots, after: datetime) -> Step:
        overlapped = [at for at in planned.latest_first if self._overlaps(at)]
        if overlapped and len(overlapped) == len(planned.latest_first) and self.policy.overlap is Overlap.SKIP:
            return Step(_skip(planned, TickOutcome.SKIPPED_OVERLAP, lambda _: None), due=None, next_tick_at=after)
        chosen = self._chosen(planned)
        if chosen is None:
            return Step(_skip(planned, TickOutcome.MISSED, self._cause), due=None, next_tick_at=after)
        position = planned.latest_first.index(chosen.planned_at)
        passed_over = _Slots(planned.latest_first[position + 1 :], planned.oldest, planned.older)
        next_tick_at = planned.latest_first[position - 1] if position else after
        return Step(self._passed_over(passed_over), due=chosen, next_tick_at=next_tick_at)

    def _chosen(self, planned: _Slots) -> DueTick | None:
        latest = planned.latest_first[0]
        cause = self._cause(latest)
        if self.history.is_first_of_term and self.policy.run_on_start:
            return DueTick(latest, TickReason.RUN_ON_START, cause)
        if self.policy.catch_up.mode is CatchUpMode.ALL:
            is_skipping = self.policy.overlap is Overlap.SKIP
            runnable = [at for at in planned.latest_first if not (is_skipping and self._overlaps(at))]
            oldest = runnable[: max(1, self.policy.catch_up.most)][-1]
            cause = self._cause(oldest)
            return DueTick(oldest, TickReason.TICK if cause is None else TickReason.CATCH_UP, cause)
        if cause is None or self._overlaps(latest):
            return DueTick(latest, TickReason.TICK, None)
        if self.policy.catch_up.mode is CatchUpMode.LATEST:
            return DueTick(latest, TickReason.CATCH_UP, cause)
        return None

    def _passed_over(self, slots: _Slots) -> tuple[SkippedTick, ...]:
        return tuple(
            SkippedTick(
                skipped.planned_at,
                TickOutcome.SKIPPED_OVERLAP if self._overlaps(skipped.planned_at) else TickOutcome.COLLAPSED,
                None if self._overlaps(skipped.planned_at) else self._cause(skipped.planned_at) or MissCause.LATE,
                skipped.covers,
            )
            for skipped in _skip(slots, TickOutcome.COLLAPSED, self._cause)
        )

    def _overlaps(self, planned_at: datetime) -> bool:
        previous = self.history.previous_dispatch
        return previous is not None and planned_at in previous

    def _cause(self, planned_at: datetime) -> MissCause | None:
        """Return why the tick did not run at `planned_at`, or None if it is on time or nobody could have expected it."""
        if not self._was_expected(planned_at) or self._is_on_time(planned_at):
            return None
        if planned_at < self.history.since:
            return MissCause.NO_LEADER
        down = self.history.database_down
        return MissCause.DB_DOWN if down is not None and planned_at in down else MissCause.LATE

    def _was_expected(self, planned_at: datetime) -> bool:
        """Tell whether the sweep was known at the time: its leader lays the anchor, at most a second before its term."""
        anchor = self.state.anchor_at
        is_laid_now = self.history.since - anchor < timedelta(seconds=1)
        return planned_at > anchor or (planned_at == anchor and not is_laid_now)

    def _is_on_time(self, planned_at: datetime) -> bool:
        late = self.now - planned_at
        if late > timedelta(seconds=ON_TIME_SECONDS):  # true of nearly all that are asked about, and cheap
            return False
        return late <= (self.policy.schedule.after(planned_at, anchor=self.state.anchor_at) - planned_at) / 2


def _planned(schedule: Schedule, state: TickState, now: datetime) -> _Slots:
    """List the due planned times, latest first, at most MAX_ROWS_PER_STEP of them, and count the rest."""
    listed: list[datetime] = []
    for planned_at in schedule.between(state.next_tick_at, now, anchor=state.anchor_at):
        listed.append(planned_at)
        if len(listed) == MAX_ROWS_PER_STEP:
            break
    if not listed:  # the schedule has changed since next_tick_at was written: that moment counts as planned
        listed.append(state.next_tick_at)
    total = schedule.count(state.next_tick_at, now, anchor=state.anchor_at)
    return _Slots(tuple(listed), state.next_tick_at, max(0, total - len(listed)))


def _skip(slots: _Slots, outcome: TickOutcome, cause: Callable[[datetime], MissCause | None]) -> tuple[SkippedTick, ...]:
    """Return a ledger row for each planned time, oldest first; those that are not listed share one row."""
    rows = [SkippedTick(at, outcome, cause(at)) for at in reversed(slots.latest_first)]
    if slots.older:
        rows.insert(0, SkippedTick(slots.oldest, outcome, cause(slots.oldest), covers=slots.older))
    return tuple(rows)
