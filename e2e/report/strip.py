"""Draw what became of each planned tick, to scale, and what it enqueued and skipped."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from e2e.report.axis import Axis, period
from e2e.report.drawing import Drawing, tip
from e2e.report.kinds import Kind, description, kind_of
from e2e.report.legend import Entry, hatch
from e2e.report.records import CaseRecord, PlannedTick
from e2e.report.spans import Span
from e2e.report.text import width_of

_CELL = 24
_BESIDE = 18
_BARS = 30
_COUNT = 10
_GAP = 10
_LATE = "#c62f3d"
_HATCHING = "#8f1420"


@dataclass(frozen=True, slots=True)
class Cell:
    """Be a tick and the span of planned times that it stands for."""

    tick: PlannedTick
    span: Span

    @property
    def kind(self) -> Kind:
        """What became of it."""
        return kind_of(self.tick)

    @property
    def is_late(self) -> bool:
        """Whether it ran, but not at its time."""
        return self.tick.has_run and self.tick.cause is not None


@dataclass(frozen=True, slots=True)
class Strip:
    """Be the ticks in view."""

    cells: tuple[Cell, ...]

    @classmethod
    def of(cls, case: CaseRecord, *, axis: Axis) -> "Strip":
        """Return the ticks of a case whose time is in view."""
        cells = [Cell(tick, period(tick.covers, planned=tick.planned, interval=case.interval_seconds)) for tick in case.ticks]
        return cls(tuple(cell for cell in cells if cell.span.end > axis.view.start and cell.span.start < axis.view.end))

    @property
    def height(self) -> float:
        """How high it becomes."""
        if not self.cells:
            return 0
        counts = sum(_counts_height(self._counted(of)) for of in _COUNTS)
        return _CELL + (_BESIDE if self._has_beside() else 0) + counts

    def draw(self, drawing: Drawing, *, axis: Axis, top: float, lines: Sequence[float]) -> None:
        """Draw all of it, with words beside lines at these places where they can."""
        if not self.cells:
            return
        _name(drawing, "planned ticks", axis=axis, y=top + _CELL / 2 + 4)
        y = top + _CELL
        for cell in self.cells:
            if cell.tick.is_on_grid:
                _draw_cell(drawing, cell, axis=axis, y=top, lines=lines)
        if self._has_beside():
            _name(drawing, "beside the plan", axis=axis, y=y + _BESIDE / 2 + 5)
            for cell in self.cells:
                if not cell.tick.is_on_grid:
                    _draw_beside(drawing, cell, axis=axis, y=y + _BESIDE / 2 + 2)
            y += _BESIDE
        for count in _COUNTS:
            _draw_counts(drawing, count, self._counted(count), axis=axis, top=y, lines=lines)
            y += _counts_height(self._counted(count))

    def legend(self) -> list[Entry]:
        """Return what the legend says of the ticks."""
        kinds = {cell.kind for cell in self.cells}
        entries = [_entry(kind) for kind in Kind if kind in kinds]
        return [*entries, Entry("ran late", _LATE, 3)] if any(cell.is_late for cell in self.cells) else entries

    def _has_beside(self) -> bool:
        return any(not cell.tick.is_on_grid for cell in self.cells)

    def _counted(self, count: "_Count") -> list[Cell]:
        """Return the case's own cells with something to count, the largest first: it gets its number where not all can."""
        counted = [cell for cell in self.cells if count.of(cell.tick) and cell.tick.planned >= 0]
        return sorted(counted, key=lambda cell: (-count.of(cell.tick), cell.tick.planned))


def _entry(kind: Kind) -> Entry:
    look = kind.look
    return Entry(look.words, look.fill, 14, hatching=_HATCHING if look.is_hatched else None, mark=kind.mark, ink=look.ink)


@dataclass(frozen=True, slots=True)
class _Count:
    name: str
    of: Callable[[PlannedTick], int]
    fill: str


_COUNTS = (
    _Count("enqueued", lambda tick: tick.enqueued, "#0e7c86"),
    _Count("skipped", lambda tick: tick.skipped_duplicates, "#8c959f"),
)


def _counts_height(cells: Sequence[Cell]) -> float:
    return _GAP + _COUNT + (_BARS if cells else 0)


def _draw_counts(
    drawing: Drawing, count: _Count, cells: Sequence[Cell], *, axis: Axis, top: float, lines: Sequence[float]
) -> None:
    bottom = top + _counts_height(cells)
    _name(drawing, f"{count.name}: {sum(count.of(cell.tick) for cell in cells)}", axis=axis, y=bottom - 3)
    drawing.line(axis.left, bottom, axis.right, bottom, stroke="#afb8c1")
    most = max((count.of(cell.tick) for cell in cells), default=1)
    numbered: list[Span] = []
    for cell in cells:
        amount = count.of(cell.tick)
        x, room = axis.x(cell.span.start) + 1, axis.x(cell.span.end) - axis.x(cell.span.start) - 2
        width, height = min(max(room, 1.5), 18), max(_BARS * amount / most, 2)
        shape = drawing.rectangle(x, bottom - height, width, height, fill=count.fill, class_=count.name)
        tip(shape, f"{cell.tick.planned:.1f} s: {count.name} {amount}")
        half = width_of(str(amount), size=10.5) / 2 + 1
        middle = _beside_lines(x + width / 2, half, lines=lines)
        place = Span(middle - half, middle + half)
        if not any(place.meets(other) for other in numbered):
            drawing.words(middle, bottom - height - 3, str(amount), size=10.5, text_anchor="middle", class_="count")
            numbered.append(place)


def _beside_lines(middle: float, half: float, *, lines: Sequence[float]) -> float:
    """Return the place next to one that no line crosses, or that place if lines are everywhere."""
    near = [line + side * (half + 2.5) for line in lines for side in (-1, 1) if abs(line - middle) < half + 2]
    free = [place for place in (middle, *near) if not _is_crossed(place, half, lines=lines)]
    return min(free, key=lambda place: abs(place - middle), default=middle)


def _name(drawing: Drawing, text: str, *, axis: Axis, y: float) -> None:
    drawing.words(axis.left - 10, y, text, text_anchor="end")


def _draw_cell(drawing: Drawing, cell: Cell, *, axis: Axis, y: float, lines: Sequence[float]) -> None:
    look = cell.kind.look
    x = axis.x(cell.span.start)
    whole = axis.x(cell.span.end) - x
    # A gap between two ticks, narrower where they are many.
    width = whole - min(1.5, whole * 0.2)
    shape = drawing.rectangle(
        x, y, width, _CELL, fill=look.fill, rx=min(2, width / 4), class_="tick", data_planned=cell.tick.planned
    )
    tip(shape, description(cell.tick))
    if look.is_hatched:
        hatch(drawing, x=x, y=y, width=width, height=_CELL, stroke=_HATCHING)
    if cell.is_late:
        drawing.rectangle(x, y + _CELL + 1, width, 3, fill=_LATE, class_="late")
    for words in _words(cell):
        half = width_of(words, size=11) / 2 + 2
        places = [x + width * part for part in (0.5, 0.3, 0.7, 0.2, 0.8)]
        inside = [place for place in places if x + half + 1 <= place <= x + width - half - 1]
        middle = next((place for place in inside if not _is_crossed(place, half, lines=lines)), None)
        if middle is not None:
            if look.is_hatched:
                drawing.rectangle(middle - half, y + 5, 2 * half, _CELL - 10, fill=look.fill)
            drawing.words(middle, y + _CELL / 2 + 4, words, fill=look.ink, text_anchor="middle")
            return


def _is_crossed(middle: float, half: float, *, lines: Sequence[float]) -> bool:
    return any(middle - half - 2 < line < middle + half + 2 for line in lines)


def _words(cell: Cell) -> Iterable[str]:
    if cell.tick.covers > 1:
        yield f"{cell.tick.covers} {cell.kind.look.short[0]}"
    yield from cell.kind.look.short


def _draw_beside(drawing: Drawing, cell: Cell, *, axis: Axis, y: float) -> None:
    x = axis.x(cell.tick.started if cell.tick.started is not None else cell.tick.planned)
    shape = drawing.path(f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z", fill=cell.kind.look.fill, class_="tick")
    tip(shape, description(cell.tick))
