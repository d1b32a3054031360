"""Say in sentences what a case's picture shows."""

from collections import Counter
from collections.abc import Iterable, Sequence

from e2e.report.axis import view_of
from e2e.report.kinds import Kind, cause_in_words, kind_of
from e2e.report.lead import Leadership, leadership
from e2e.report.records import CaseRecord, PlannedTick
from e2e.report.spans import Span

_LATER = {"run_on_start": "a run on start", "catch_up": "a late tick"}


def findings(case: CaseRecord) -> list[str]:
    """Return what to look for: who led, which planned ticks did not run at their time and what made up for them."""
    led = leadership(case, view=view_of(case))
    return [*_of_leads(led, case=case), *_of_ticks(case.own_ticks), *_of_jobs(case.own_ticks)]


def _of_leads(led: Leadership, *, case: CaseRecord) -> list[str]:
    within = Span(0.0, case.seconds)
    leaders = [lane.name for lane in led.lanes if any(lead.span.meets(within) for lead in lane.leads)]
    said = []
    if len(leaders) == 1 and not led.nobody:
        said.append(f"One dispatcher leads from the beginning to the end: {leaders[0]}.")
    elif len(leaders) > 1:
        said.append(f"The lead goes from {leaders[0]} to {', then to '.join(leaders[1:])}.")
    if led.nobody:
        spans = _listed([f"from {span.start:.0f} s to {span.end:.0f} s" for span in led.nobody])
        said.append(f"Nobody leads {spans}, to within {led.scrape_seconds:.0f} s.")
    return said


def _of_ticks(ticks: Sequence[PlannedTick]) -> list[str]:
    on_grid = [tick for tick in ticks if tick.is_on_grid]
    planned = sum(tick.covers for tick in on_grid)
    if not planned:
        return [*_of_refused(ticks), "No tick was planned in this time."]
    in_time = sum(tick.covers for tick in on_grid if tick.has_run and not tick.cause)
    said = [
        f"All {planned} planned ticks ran at their time, none was missed."
        if in_time == planned
        else f"{planned} ticks were planned, {in_time} of them ran at their time."
    ]
    said += [
        f"{_ticks(count)} did not, since {cause_in_words(cause)}: {_made_up(on_grid, cause=cause)}."
        for cause, count in sorted(_counted(on_grid).items())
    ]
    odd = Counter[Kind]()
    for tick in on_grid:
        if kind_of(tick) in {Kind.FAILED, Kind.PAUSED, Kind.OVERLAPPED} and not tick.cause:
            odd[kind_of(tick)] += tick.covers
    said += [f"{_ticks(count)}: {kind.look.words}." for kind, count in sorted(odd.items(), key=lambda item: item[0].name)]
    return said + _of_refused(ticks)


def _counted(ticks: Iterable[PlannedTick]) -> Counter[str]:
    causes = Counter[str]()
    for tick in ticks:
        if tick.cause:
            causes[tick.cause] += tick.covers
    return causes


def _made_up(ticks: Sequence[PlannedTick], *, cause: str) -> str:
    """Return what became of ticks that did not run at their time: for each that ran later, how many it stands for."""
    of_cause = [tick for tick in ticks if tick.cause == cause]
    total = _amount(of_cause)
    stands_for = Counter[PlannedTick]({tick: 1 for tick in of_cause if tick.has_run})
    for tick in of_cause:
        later = next((other for other in ticks if other.has_run and other.planned > tick.planned), None)
        if tick.outcome == "collapsed" and later:
            stands_for[later] += tick.covers
    parts = [
        f"{_LATER.get(tick.reason, 'a later tick')} at {tick.started or 0.0:.0f} s made up for {_share(count, total=total)}"
        for tick, count in stands_for.items()
        if count > 1 or tick.cause != cause
    ]
    if alone := sum(count == 1 and tick.cause == cause for tick, count in stands_for.items()):
        parts.append(f"{_share(alone, total=total)} ran later")
    if lost := total - sum(stands_for.values()):
        parts.append(f"nothing made up for {_share(lost, total=total)}")
    return _listed(parts)


def _share(count: int, *, total: int) -> str:
    if count < total:
        return f"{count} of them"
    return "it" if total == 1 else "them all"


def _of_refused(ticks: Iterable[PlannedTick]) -> list[str]:
    refused = sum(tick.outcome == "fenced" for tick in ticks)
    return [f"{_ticks(refused)} of an old leader: refused, since a newer one was there."] if refused else []


def _of_jobs(ticks: Iterable[PlannedTick]) -> list[str]:
    own = list(ticks)
    enqueued, skipped = sum(tick.enqueued for tick in own), sum(tick.skipped_duplicates for tick in own)
    said = [f"{enqueued} {'job was' if enqueued == 1 else 'jobs were'} enqueued for stuck rows."] if enqueued else []
    if skipped:
        said.append(f"{skipped} times a row was skipped, since its job was still to be done.")
    return said


def _amount(ticks: Iterable[PlannedTick]) -> int:
    return sum(tick.covers for tick in ticks)


def _ticks(count: int) -> str:
    return "1 tick" if count == 1 else f"{count} ticks"


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
