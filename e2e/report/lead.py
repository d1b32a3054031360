"""Find out who led when, from what each dispatcher said at every scrape and from the ticks that it ran.

A scrape says what was true at its moment only; a tick tells to the millisecond who led then. In between remains time of which
nothing is known: `unsure`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from e2e.report.processes import processes
from e2e.report.records import CaseRecord, LeaderSeries, PlannedTick
from e2e.report.spans import Span, without

# A scrape may fail or come late once; a process that is silent for longer is taken to be away.
_SCRAPES_OF_PATIENCE = 2.2


@dataclass(frozen=True, slots=True)
class Lead:
    """Be a span through which one process led, and the terms of which ticks are known."""

    span: Span
    terms: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lane:
    """Be what is known of one dispatcher."""

    name: str
    alive: tuple[Span, ...]
    leads: tuple[Lead, ...]
    unsure: tuple[Span, ...]
    """When it may have led: next to a lead, up to the scrape that says otherwise."""
    runs: tuple[float, ...]
    """When it started ticks."""
    is_scraped: bool

    @property
    def terms(self) -> tuple[int, ...]:
        """The terms in which it led, as far as ticks tell."""
        return tuple(sorted({term for lead in self.leads for term in lead.terms}))


@dataclass(frozen=True, slots=True)
class Leadership:
    """Be who led in a case: one lane for each dispatcher, those that led first, and when nobody did."""

    lanes: tuple[Lane, ...]
    nobody: tuple[Span, ...]
    scrape_seconds: float


def leadership(case: CaseRecord, *, view: Span) -> Leadership:
    """Return who led in the part of a case that is in view."""
    scrape = _scrape_seconds(case.leaders)
    lanes = [
        _lane(one.ticks, name=one.name, samples=one.samples, scrape=scrape)
        for one in processes(case, patience=scrape * _SCRAPES_OF_PATIENCE)
    ]
    led = [lead.span for lane in lanes for lead in lane.leads]
    sure = [replace(lane, unsure=tuple(without(lane.unsure, led))) for lane in lanes]
    in_view = [lane for lane in sure if any(span.meets(view) for span in lane.alive)]
    return Leadership(tuple(sorted(in_view, key=lambda lane: _order(lane, view=view))), _nobody(case, sure, view=view), scrape)


def _order(lane: Lane, *, view: Span) -> tuple[bool, float, float, str]:
    led = [lead.span.start for lead in lane.leads if lead.span.meets(view)]
    return (not led, min(led, default=0.0), min(span.start for span in lane.alive), lane.name)


def _scrape_seconds(leaders: Iterable[LeaderSeries]) -> float:
    gaps = [later - earlier for one in leaders for (earlier, _), (later, _) in pairwise(one.samples)]
    return median(gaps) if gaps else 2.0


def _lane(ticks: Sequence[PlannedTick], *, name: str, samples: Sequence[tuple[float, bool]], scrape: float) -> Lane:
    alive, leads, unsure = [], [], []
    for stretch in _stretches(samples, patience=scrape * _SCRAPES_OF_PATIENCE):
        alive.append(Span(stretch[0][0], stretch[-1][0]))
        if stretch[0][1]:
            unsure.append(Span(stretch[0][0] - scrape, stretch[0][0]))
        if stretch[-1][1]:
            unsure.append(Span(stretch[-1][0], stretch[-1][0] + scrape))
        for (earlier, led), (later, leads_now) in pairwise(stretch):
            if led and leads_now:
                leads.append(Lead(Span(earlier, later), ()))
            elif led or leads_now:
                unsure.append(Span(earlier, later))
                leads.append(Lead(Span(*((earlier, earlier) if led else (later, later))), ()))
    for term in sorted({tick.term for tick in ticks}):
        moments = [tick.started for tick in ticks if tick.term == term and tick.started is not None]
        leads.append(Lead(Span(min(moments), max(moments)), (term,)))
        alive.append(leads[-1].span)
        if not samples:
            unsure.append(Span(min(moments) - scrape, max(moments) + scrape))
    denied = [moment for moment, led in samples if not led]
    merged = _merged(leads, denied=denied, patience=scrape * _SCRAPES_OF_PATIENCE)
    runs = tuple(sorted(tick.started for tick in ticks if tick.started is not None))
    return Lane(name, tuple(_joined(alive)), tuple(merged), tuple(_joined(unsure)), runs, is_scraped=bool(samples))


def _stretches(samples: Sequence[tuple[float, bool]], *, patience: float) -> list[list[tuple[float, bool]]]:
    stretches: list[list[tuple[float, bool]]] = []
    for sample in samples:
        if not stretches or sample[0] - stretches[-1][-1][0] > patience:
            stretches.append([])
        stretches[-1].append(sample)
    return stretches


def _merged(leads: Iterable[Lead], *, denied: Sequence[float], patience: float) -> list[Lead]:
    """Join leads that touch, or between which too little time lies for another one to be known."""
    merged: list[Lead] = []
    for lead in sorted(leads, key=lambda one: (one.span, one.terms)):
        last = merged[-1] if merged else None
        gap = Span(last.span.end, lead.span.start) if last else None
        if last and gap and gap.seconds <= patience and not any(gap.start < moment < gap.end for moment in denied):
            span = Span(last.span.start, max(last.span.end, lead.span.end))
            merged[-1] = Lead(span, tuple(sorted({*last.terms, *lead.terms})))
        else:
            merged.append(lead)
    return merged


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _nobody(case: CaseRecord, lanes: Iterable[Lane], *, view: Span) -> tuple[Span, ...]:
    """Return when nobody can have led, where a scrape that was answered or the ledger bears it out."""
    known = [span for lane in lanes for span in (*(lead.span for lead in lane.leads), *lane.unsure)]
    missed = [
        tick.planned + number * case.interval_seconds
        for tick in case.ticks
        if tick.cause == "no_leader"
        for number in range(tick.covers)
    ]
    denied = [moment for one in case.leaders for moment, led in one.samples if not led]
    case_span = Span(0.0, case.seconds).within(view)
    return tuple(
        span
        for span in without([case_span], known)
        if any(span.holds(moment) for moment in missed) or any(span.holds(moment) for moment in denied)
    )
