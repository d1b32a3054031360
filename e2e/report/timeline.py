"""Draw the timeline of a case: what was done to the shop, who led, what became of each planned tick, and what it enqueued."""

from dataclasses import dataclass

from e2e.report import labels
from e2e.report.axis import Axis, view_of
from e2e.report.drawing import CARD, FRAME, GRID, MUTED, Drawing, tip
from e2e.report.lanes import draw_lanes, lanes_height, lanes_legend
from e2e.report.lead import leadership
from e2e.report.legend import draw_legend
from e2e.report.processes import short_name
from e2e.report.records import CaseRecord, Happening
from e2e.report.strip import Strip
from e2e.report.text import wrapped

WIDTH = 960
_LEFT, _RIGHT = 150, WIDTH - 24
_MARGIN = 20
_EVENT = "#9a4f00"
_ROW = 16
_PASSED, _FAILED = "#1a7f37", "#c62f3d"


@dataclass(frozen=True, slots=True)
class _Rows:
    """Be where the parts of the picture lie, from the top, in pixels."""

    title: tuple[str, ...]
    labels_top: float
    lanes_top: float
    strip_top: float
    axis_top: float


def timeline(case: CaseRecord) -> str | None:
    """Return the picture of a case as SVG, None if it saw neither a dispatcher nor a tick."""
    view = view_of(case)
    axis = Axis(view, _LEFT, _RIGHT)
    led = leadership(case, view=view)
    strip = Strip.of(case, axis=axis)
    if not led.lanes and not strip.cells:
        return None
    placed = labels.placed(((axis.x(one.moment), _words(one)) for one in case.happenings), left=_LEFT, right=_RIGHT)
    rows = _rows(case, label_rows=max((one.row + 1 for one in placed), default=0), lanes=lanes_height(led), strip=strip.height)
    drawing = Drawing(width=WIDTH)
    _draw_heading(drawing, case, title=rows.title)
    _draw_grid(drawing, case, axis=axis, rows=rows)
    draw_lanes(drawing, led, axis=axis, top=rows.lanes_top, ends_at=case.seconds)
    strip.draw(drawing, axis=axis, top=rows.strip_top, lines=[label.x for label in placed])
    _draw_axis(drawing, axis=axis, top=rows.axis_top)
    _draw_happenings(drawing, placed, case.happenings, rows=rows)
    entries = [*lanes_legend(led, view=view, ends_at=case.seconds), *strip.legend()]
    bottom = draw_legend(drawing, entries, left=_MARGIN, right=_RIGHT, top=rows.axis_top + 44)
    return drawing.to_text(height=bottom + 10, title=f"{case.heading}: {case.title}")


def _words(one: Happening) -> str:
    return f"{one.moment:.1f} s {short_name(one.text)}"


def _rows(case: CaseRecord, *, label_rows: int, lanes: float, strip: float) -> _Rows:
    title = tuple(wrapped(case.title, width=WIDTH - 2 * _MARGIN - 70, size=15, is_bold=True))
    labels_top = 24 + len(title) * 19 + 28
    lanes_top = labels_top + label_rows * _ROW + (8 if label_rows else 0)
    strip_top = lanes_top + lanes + (14 if lanes else 0)
    return _Rows(title, labels_top, lanes_top, strip_top, strip_top + strip + 6)


def _draw_heading(drawing: Drawing, case: CaseRecord, *, title: tuple[str, ...]) -> None:
    for index, line in enumerate(title):
        drawing.words(_MARGIN, 30 + index * 19, line, size=15, font_weight="bold")
    colour = _PASSED if case.outcome == "passed" else _FAILED
    drawing.rectangle(_RIGHT - 62, 15, 62, 21, rx=10.5, fill=colour)
    drawing.words(_RIGHT - 31, 29.5, case.outcome, size=11.5, fill="#ffffff", font_weight="bold", text_anchor="middle")
    caption = (
        f"0 s is {case.began_at:%Y-%m-%d %H:%M:%S} UTC · the case took {case.seconds:.1f} s"
        f" · a tick is planned every {case.interval_seconds:g} s"
    )
    drawing.words(_MARGIN, 30 + len(title) * 19, caption, size=11.5, fill=MUTED)


def _draw_grid(drawing: Drawing, case: CaseRecord, *, axis: Axis, rows: _Rows) -> None:
    top, bottom = rows.lanes_top, rows.axis_top
    for mark in axis.marks(most=14):
        drawing.line(axis.x(mark), top, axis.x(mark), bottom, stroke=GRID)
    # What lies before and after the case is not its own.
    for start, end in ((axis.left, axis.x(0)), (axis.x(case.seconds), axis.right)):
        drawing.rectangle(start, top, end - start, bottom - top, fill="#8c959f", fill_opacity=0.12)


def _draw_axis(drawing: Drawing, *, axis: Axis, top: float) -> None:
    drawing.line(axis.left, top, axis.right, top, stroke=FRAME)
    for mark in axis.marks(most=14):
        x = axis.x(mark)
        drawing.line(x, top, x, top + 4, stroke=MUTED)
        drawing.words(x, top + 16, f"{round(mark, 1):g}", fill=MUTED, text_anchor="middle")
    drawing.words(axis.left - 10, top + 16, "seconds", fill=MUTED, text_anchor="end")


def _draw_happenings(drawing: Drawing, placed: list[labels.Label], happenings: tuple[Happening, ...], *, rows: _Rows) -> None:
    for label in placed:
        y = rows.labels_top + label.row * _ROW
        top = y + (_ROW - 2 if label.is_over_line else 1)
        drawing.line(
            label.x, top, label.x, rows.axis_top, stroke=_EVENT, stroke_width=1.4, stroke_dasharray="4 3", class_="happening"
        )
    for label, one in zip(placed, sorted(happenings, key=lambda one: one.moment), strict=True):
        y = rows.labels_top + label.row * _ROW
        drawing.rectangle(label.left - 1, y, label.right - label.left + 2, _ROW - 2, fill=CARD)
        anchor = "end" if label.is_anchored_right else "start"
        element = drawing.words(
            label.right if label.is_anchored_right else label.left, y + 11, label.text, size=labels.SIZE, fill=_EVENT,
            text_anchor=anchor, class_="label",
        )  # fmt: skip
        tip(element, f"{one.moment:.1f} s {one.text}")
