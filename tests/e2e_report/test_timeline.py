from collections import Counter
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from e2e.report.axis import period, view_of
from e2e.report.records import CaseRecord, read_cases
from e2e.report.timeline import timeline
from tests.e2e_report.made_up import case, series, tick

CASES = {found.name: found for found in read_cases(Path(__file__).parent / "cases")}
SVG = "{http://www.w3.org/2000/svg}"

# All that a row of the ledger can say.
ALL_OUTCOMES = case(
    interval_seconds=1,
    ticks=[
        tick(0, outcome="ok", enqueued=3),
        tick(1, reason="run_on_start"),
        tick(2, outcome="missed", cause="late", covers=6),
        tick(8, outcome="error"),
        tick(9, outcome="paused", cause="paused"),
        tick(10, outcome="skipped_overlap", covers=4),
        tick(14, outcome="ok", reason="catch_up", cause="db_down", enqueued=1, skipped=140),
        tick(14.3, outcome="fenced"),
        tick(30.6, outcome="ok", reason="manual", enqueued=2),
        tick(15, outcome="collapsed", cause="no_leader", covers=30),
        tick(45),
    ],
)


def _parse(picture: str | None) -> ET.Element:
    assert picture is not None
    return ET.fromstring(picture)  # noqa: S314 - we have drawn it ourselves


def _of_class(picture: ET.Element, name: str) -> list[ET.Element]:
    return [element for element in picture.iter() if element.get("class") == name]


@pytest.mark.parametrize("drawn", [*CASES.values(), ALL_OUTCOMES], ids=lambda one: one.name)
def test_every_tick_in_view_is_drawn_once(drawn: CaseRecord) -> None:
    view = view_of(drawn)
    spans = [period(one.covers, planned=one.planned, interval=drawn.interval_seconds) for one in drawn.ticks]

    ticks = _of_class(_parse(timeline(drawn)), "tick")

    assert len(ticks) == sum(span.end > view.start and span.start < view.end for span in spans)
    on_grid = Counter(one.get("data-planned") for one in ticks if one.tag == f"{SVG}rect")
    assert set(on_grid.values()) == {1}


def test_a_row_that_stands_for_many_ticks_is_as_wide_as_they_are() -> None:
    ticks = _of_class(_parse(timeline(ALL_OUTCOMES)), "tick")

    starts = {float(one.get("data-planned", "")): float(one.get("x", "")) for one in ticks if one.tag == f"{SVG}rect"}
    second = (starts[45] - starts[0]) / 45
    wide = next(one for one in ticks if one.get("data-planned") == "15")
    assert float(wide.get("width", "")) == pytest.approx(30 * second, abs=2)
    assert starts[15] - starts[14] == pytest.approx(second, abs=0.2)


def test_enqueued_and_skipped_are_numbered() -> None:
    picture = _parse(timeline(ALL_OUTCOMES))

    assert {one.text for one in _of_class(picture, "count")} == {"3", "140", "1", "2"}
    texts = {one.text for one in picture.iter(f"{SVG}text")}
    assert {"enqueued: 6", "skipped: 140"} <= texts


def test_the_leader_that_was_killed_ends_and_the_time_without_a_leader_is_marked() -> None:
    picture = _parse(timeline(CASES["leader_killed"]))

    assert len(_of_class(picture, "gone")) == 1
    assert len(_of_class(picture, "nobody")) == 1
    assert [one.text for one in _of_class(picture, "nobody-label")] == ["nobody leads, about 14 s"]
    assert [one.text for one in _of_class(picture, "label")] == ["4.6 s SIGKILL to the leader, b2zjq"]


def test_a_hand_over_shows_no_time_without_a_leader() -> None:
    picture = _parse(timeline(CASES["rolling_update"]))

    assert _of_class(picture, "nobody") == []


def test_each_thing_done_to_the_shop_has_a_line_and_a_label() -> None:
    happenings = [(number * 2.0, f"thing {number} is done to pod shop-dispatcher-75cc69bb55-aaaaa") for number in range(13)]

    picture = _parse(timeline(case(happenings=happenings, ticks=[tick(0)])))

    assert len(_of_class(picture, "happening")) == len(_of_class(picture, "label")) == 13
    assert "0.0 s thing 0 is done to pod aaaaa" in [one.text for one in _of_class(picture, "label")]


@pytest.mark.parametrize("drawn", [*CASES.values(), ALL_OUTCOMES], ids=lambda one: one.name)
def test_a_picture_needs_nothing_but_itself_and_lies_in_its_own_bounds(drawn: CaseRecord) -> None:
    picture = _parse(timeline(drawn))

    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    assert width <= 1000
    assert {element.tag.removeprefix(SVG) for element in picture.iter()} <= {
        "svg", "title", "g", "rect", "line", "circle", "path", "text",
    }  # fmt: skip
    for element in picture.iter(f"{SVG}rect"):
        x, y = float(element.get("x", "")), float(element.get("y", ""))
        assert 0 <= x <= x + float(element.get("width", "")) <= width
        assert 0 <= y <= y + float(element.get("height", "")) <= height


def test_a_long_case_with_a_tick_each_second_is_drawn_with_numbers_that_do_not_touch() -> None:
    ticks = [tick(number, outcome="ok", enqueued=number % 7 * 40) for number in range(300)]

    picture = _parse(timeline(case(seconds=300, interval_seconds=1, ticks=ticks)))

    places = sorted(float(one.get("x", "")) for one in _of_class(picture, "count"))
    assert len(_of_class(picture, "tick")) == 300
    assert all(right - left > 12 for left, right in pairwise(places))


def test_a_case_that_saw_neither_dispatcher_nor_tick_has_no_picture() -> None:
    assert timeline(case(happenings=[(1, "a stranger knocks")])) is None


def test_a_dispatcher_that_was_scraped_once_is_seen() -> None:
    (line,) = _of_class(_parse(timeline(case(leaders=[series("10.0.0.1:9090", start=59, end=59)]))), "alive")

    assert float(line.get("x2", "")) - float(line.get("x1", "")) >= 4


def test_the_legend_names_only_what_is_drawn() -> None:
    leaders = [series("10.0.0.1:9090", start=-60, end=59, led=(-60, 60))]

    words = {one.text for one in _parse(timeline(case(leaders=leaders))).iter(f"{SVG}text")}

    assert "leads (dots: ticks that it ran)" in words
    assert words & {"stands by", "nobody leads", "answers no scrape", "missed"} == set()


def test_a_case_within_one_period_of_its_sweep_shows_the_tick_that_still_stands() -> None:
    drawn = case(
        interval_seconds=3600,
        ticks=[tick(-300, outcome="ok", reason="run_on_start", enqueued=2)],
        leaders=[series("10.0.0.1:9090", start=-60, end=59, led=(-60, 60))],
    )

    picture = _parse(timeline(drawn))

    assert len(_of_class(picture, "tick")) == 1
    assert "enqueued: 0" in {one.text for one in picture.iter(f"{SVG}text")}
