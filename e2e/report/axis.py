"""Lay a case's seconds on the picture's width."""

from dataclasses import dataclass
from math import ceil, floor

from e2e.report.records import CaseRecord
from e2e.report.spans import Span

_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600)


@dataclass(frozen=True, slots=True)
class Axis:
    """Be the way from seconds to pixels."""

    view: Span
    left: float
    right: float

    def x(self, moment: float) -> float:
        """Return where a moment lies; one beyond the view lies at its edge."""
        part = (min(max(moment, self.view.start), self.view.end) - self.view.start) / self.view.seconds
        return self.left + part * (self.right - self.left)

    def marks(self, *, most: int) -> list[float]:
        """Return moments to name, at even distances, at most so many."""
        step = next((step for step in _STEPS if self.view.seconds / step <= most), _STEPS[-1])
        first, last = ceil(self.view.start / step), floor(self.view.end / step)
        return [number * step for number in range(first, last + 1)]


def view_of(case: CaseRecord) -> Span:
    """Return the case and a little before and after it, so that a tick at an edge is seen."""
    margin = max(min(case.interval_seconds, case.seconds / 10), 0.5)
    return Span(-margin, case.seconds + margin)


def period(covers: int, *, planned: float, interval: float) -> Span:
    """Return the span that planned ticks stand for: until the next one is planned."""
    return Span(planned, planned + covers * interval)
