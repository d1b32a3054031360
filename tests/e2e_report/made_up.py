"""Make up cases that are harder to draw than those of a run."""

from collections.abc import Iterable
from datetime import UTC, datetime

from e2e.report.records import CaseRecord, Happening, LeaderSeries, PlannedTick


def case(
    *,
    name: str = "made_up",
    title: str = "Something is done to the shop.",
    seconds: float = 60,
    interval_seconds: float = 5,
    happenings: Iterable[tuple[float, str]] = (),
    ticks: Iterable[PlannedTick] = (),
    leaders: Iterable[LeaderSeries] = (),
) -> CaseRecord:
    return CaseRecord(
        name=name,
        title=title,
        outcome="passed",
        began_at=datetime(2026, 11, 30, 16, 0, tzinfo=UTC),
        seconds=seconds,
        interval_seconds=interval_seconds,
        figures={},
        happenings=tuple(Happening(moment, text) for moment, text in happenings),
        ticks=tuple(ticks),
        leaders=tuple(leaders),
    )


def tick(
    planned: float,
    *,
    outcome: str = "empty",
    reason: str = "tick",
    cause: str | None = None,
    covers: int = 1,
    enqueued: int = 0,
    skipped: int = 0,
    term: int = 1,
    dispatcher: str = "shop-dispatcher-75cc69bb55-aaaaa_1",
) -> PlannedTick:
    return PlannedTick(
        planned=planned,
        started=planned + 0.01 if outcome in {"ok", "empty", "error", "fenced"} else None,
        reason=reason,
        outcome=outcome,
        cause=cause,
        covers=covers,
        enqueued=enqueued,
        skipped_duplicates=skipped,
        term=term,
        dispatcher=dispatcher,
    )


def series(process: str, *, start: float, end: float, led: tuple[float, float] | None = None, every: float = 2) -> LeaderSeries:
    """Make up what a process says that was scraped from one moment to another, and led from one (included) to another."""
    moments = [start + number * every for number in range(int((end - start) / every) + 1)]
    return LeaderSeries(process, tuple((moment, led is not None and led[0] <= moment < led[1]) for moment in moments))
