from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from e2e.report.labels import Label, placed

LEFT, RIGHT = 150, 936
LINES = st.lists(st.tuples(st.floats(LEFT, RIGHT), st.text("abc xyz", min_size=1, max_size=90)), max_size=12)


@given(LINES)
def test_no_label_touches_another_or_leaves_the_picture(lines: list[tuple[float, str]]) -> None:
    labels = placed(lines, left=LEFT, right=RIGHT)

    assert len(labels) == len(lines)
    assert [pair for pair in combinations(labels, 2) if _touch(*pair)] == []
    assert all(label.left >= LEFT and label.right <= RIGHT + 1 for label in labels)


def test_labels_of_lines_that_stand_apart_share_a_row() -> None:
    labels = placed([(200, "rolled"), (500, "killed")], left=LEFT, right=RIGHT)

    assert [label.row for label in labels] == [0, 0]


def test_no_line_crosses_a_label_that_is_not_its_own() -> None:
    lines = [(160 + 95 * number, "rolling update of the dispatchers") for number in range(8)] + [(930, "rolled")]

    labels = placed(lines, left=LEFT, right=RIGHT)

    assert [(one, other) for one in labels for other in labels if one.row < other.row and _is_crossed(other, by=one)] == []


def test_labels_at_the_end_of_a_case_stand_one_above_the_other_and_no_higher() -> None:
    lines = [
        (194, "0.0 s workers are scaled to 4"),
        (382, "21.4 s workers are 4"),
        (597, "45.7 s 10 products a second are created"),
        (690, "56.3 s workers are scaled to 1"),
        (754, "63.4 s workers are 1"),
        (766, "64.8 s 70 products were created, 0 requests refused"),
    ]

    labels = placed(lines, left=LEFT, right=RIGHT)

    assert [label.row for label in labels] == [0, 4, 3, 2, 1, 0]


def test_a_text_that_is_too_long_is_cut_off() -> None:
    (label,) = placed([(200, "word " * 100)], left=LEFT, right=RIGHT)

    assert label.text.endswith("word…")
    assert label.right - label.left < 340


def _touch(one: Label, other: Label) -> bool:
    return one.row == other.row and one.left < other.right and other.left < one.right


def _is_crossed(label: Label, *, by: Label) -> bool:
    return label.left < by.x < label.right
