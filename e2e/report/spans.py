"""Reckon with spans of time."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Be a span, in seconds from the case's beginning."""

    start: float
    end: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start

    def holds(self, moment: float) -> bool:
        """Tell whether a moment lies in it, its ends included."""
        return self.start <= moment <= self.end

    def meets(self, other: "Span") -> bool:
        """Tell whether the two share a moment."""
        return self.start <= other.end and other.start <= self.end

    def within(self, other: "Span") -> "Span":
        """Return the part of it that lies in another which it meets."""
        return Span(max(self.start, other.start), min(self.end, other.end))


def without(spans: Iterable[Span], taken: Iterable[Span]) -> list[Span]:
    """Return what is left of spans when others are taken out of them."""
    left = sorted(spans)
    for hole in sorted(taken):
        cut: list[Span] = []
        for span in left:
            if not span.meets(hole):
                cut.append(span)
                continue
            cut += [part for part in (Span(span.start, hole.start), Span(hole.end, span.end)) if part.seconds > 0]
        left = cut
    return left
