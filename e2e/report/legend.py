"""Draw the legend of a picture: only what occurs in it."""

from collections.abc import Iterable
from dataclasses import dataclass

from e2e.report.drawing import MUTED, Drawing
from e2e.report.text import width_of

_ROW = 19
_SIZE = 11
_SWATCH = 18


@dataclass(frozen=True, slots=True)
class Entry:
    """Be a line of the legend: how something looks, and what it is."""

    words: str
    fill: str
    height: float = 12
    hatching: str | None = None
    mark: str = ""
    ink: str = "#ffffff"


def draw_legend(drawing: Drawing, entries: Iterable[Entry], *, left: float, right: float, top: float) -> float:
    """Draw entries in rows from left to right; returns where they end."""
    x, y = left, top
    for entry in entries:
        width = _SWATCH + 6 + width_of(entry.words, size=_SIZE)
        if x > left and x + width > right:
            x, y = left, y + _ROW
        draw_swatch(drawing, entry, x=x, y=y - entry.height / 2, width=_SWATCH)
        drawing.words(x + _SWATCH + 6, y + 4, entry.words, size=_SIZE, fill=MUTED)
        x += width + 18
    return y + _ROW / 2


def draw_swatch(drawing: Drawing, entry: Entry, *, x: float, y: float, width: float) -> None:
    """Draw how an entry looks."""
    drawing.rectangle(x, y, width, entry.height, rx=2, fill=entry.fill)
    if entry.hatching:
        hatch(drawing, x=x, y=y, width=width, height=entry.height, stroke=entry.hatching)
    if entry.mark:
        drawing.words(x + width / 2, y + entry.height / 2 + 4, entry.mark, size=11.5, fill=entry.ink, text_anchor="middle")


def hatch(drawing: Drawing, *, x: float, y: float, width: float, height: float, stroke: str) -> None:
    """Draw slanting lines over a rectangle."""
    lines = []
    start = x - height
    while start < x + width:
        first, last = max(start, x), min(start + height, x + width)
        if last - first > 0.5:
            lines.append(f"M{first:.1f} {y + height - (first - start):.1f}L{last:.1f} {y + height - (last - start):.1f}")
        start += 6
    drawing.path("".join(lines), stroke=stroke, stroke_width=1, stroke_opacity=0.55)
