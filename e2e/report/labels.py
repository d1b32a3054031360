"""Place the labels of lines that stand close, in rows above them: no label touches another, or a line that is not its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from e2e.report.text import shortened, width_of

SIZE = 11
_GAP = 4
_MOST_WIDTH = 330


@dataclass(frozen=True, slots=True)
class Label:
    """Be a label, its line at `x`, its text from `left` to `right`, in a row counted from the top.

    It stands to the right of its line, or over it where the picture ends, or to the left where others stand close to that.
    """

    x: float
    text: str
    left: float
    right: float
    row: int = 0

    @property
    def is_over_line(self) -> bool:
        """Whether its line begins beneath it."""
        return self.left < self.x < self.right

    @property
    def is_anchored_right(self) -> bool:
        """Whether it is its right end that must not be passed."""
        return self.left < self.x

    def spans(self, x: float) -> bool:
        """Tell whether a line at x would cross its text, in its row."""
        return self.left - _GAP < x < self.right + _GAP


def placed(lines: Iterable[tuple[float, str]], *, left: float, right: float) -> list[Label]:
    """Return labels for lines at x with a text.

    Each line runs down from its own label's row, so whoever stands above is crossed by nobody below.
    """
    in_order = sorted(lines, key=lambda line: line[0])
    # Lines at one place get an order, too.
    waiting = _sided([(x + index / 1000, text) for index, (x, text) in enumerate(in_order)], left=left, right=right)
    done: list[Label] = []
    while waiting:
        # Where too many stand close, none is free of others above it; then lines run behind labels.
        label = min(waiting, key=lambda one: (sum(_stands_above(other, one) for other in waiting), one.x))
        row = max((other.row + 1 for other in done if _stands_above(other, label)), default=0)
        while any(row == other.row and _overlap(label, other) for other in done):
            row += 1
        waiting.remove(label)
        done.append(replace(label, row=row))
    return sorted(done, key=lambda one: one.x)


def _overlap(one: Label, other: Label) -> bool:
    return one.left - _GAP < other.right + _GAP and other.left - _GAP < one.right + _GAP


def _sided(lines: Sequence[tuple[float, str]], *, left: float, right: float) -> list[Label]:
    labels = [_first_choice(x, text, left=left, right=right) for x, text in lines]
    # Two that would cross each other's line: both go to the left of theirs, the later one above.
    for later in reversed(range(len(labels))):
        for earlier in reversed(range(later)):
            if labels[earlier].spans(labels[later].x) and labels[later].spans(labels[earlier].x):
                labels[earlier] = _leftwards(labels[earlier], left=left)
                labels[later] = _leftwards(labels[later], left=left)
    return labels


def _first_choice(x: float, text: str, *, left: float, right: float) -> Label:
    fitting = shortened(text, width=min(_MOST_WIDTH, right - left), size=SIZE)
    width = width_of(fitting, size=SIZE)
    start = min(x + _GAP, right - width)
    return Label(x, fitting, start, start + width)


def _leftwards(label: Label, *, left: float) -> Label:
    width = label.right - label.left
    return replace(label, left=label.x - _GAP - width, right=label.x - _GAP) if label.x - _GAP - width >= left else label


def _stands_above(upper: Label, lower: Label) -> bool:
    """Tell whether one label must stand in a higher row than another, whose line would cross it otherwise."""
    return upper.spans(lower.x) and not (lower.spans(upper.x) and lower.x <= upper.x)
