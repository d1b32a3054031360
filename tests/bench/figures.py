"""What a benchmark found, beside what was promised."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """Be one measured number; `bound` is the most it may be (the least, if `is_floor`), None where nothing is promised."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    is_floor: bool = False

    @property
    def is_within(self) -> bool:
        """Tell whether the promise holds."""
        if self.bound is None:
            return True
        return self.value >= self.bound if self.is_floor else self.value <= self.bound


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a Markdown table."""
    lines = ["| figure | measured | promised | |", "|---|---:|---:|---|"]
    for figure in figures:
        sign = "≥" if figure.is_floor else "≤"
        promised = "" if figure.bound is None else f"{sign} {figure.bound:g} {figure.unit}"
        mark = "" if figure.bound is None else ("holds" if figure.is_within else "**missed**")
        lines.append(f"| {figure.name} | {figure.value:.3g} {figure.unit} | {promised} | {mark} |")
    return "\n".join(lines) + "\n"
