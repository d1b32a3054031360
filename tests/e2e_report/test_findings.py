from collections.abc import Iterable

import pytest

from e2e.report.findings import findings
from e2e.report.records import PlannedTick
from tests.e2e_report.made_up import case, series, tick

RAN = [tick(number) for number in (0, 5)]


@pytest.mark.parametrize(
    ("ticks", "said"),
    [
        (RAN, "All 2 planned ticks ran at their time, none was missed."),
        ([], "No tick was planned in this time."),
        (
            [tick(10, outcome="missed", cause="late", covers=3)],
            "3 ticks did not, since the dispatcher was late: nothing made up for them all.",
        ),
        (
            [tick(10, outcome="collapsed", cause="db_down", covers=3), tick(25, reason="catch_up", cause="db_down")],
            "4 ticks did not, since the database was away: a late tick at 25 s made up for them all.",
        ),
        (
            [
                tick(10, outcome="collapsed", cause="no_leader"),
                tick(15, reason="run_on_start"),
                tick(20, outcome="collapsed", cause="no_leader", covers=2),
                tick(30, reason="run_on_start"),
            ],
            (
                "3 ticks did not, since nobody led: "
                "a run on start at 15 s made up for 1 of them and a run on start at 30 s made up for 2 of them."
            ),
        ),
        ([tick(10, reason="catch_up", cause="late")], "1 tick did not, since the dispatcher was late: it ran later."),
        ([*RAN, tick(10, outcome="error")], "1 tick: failed."),
        ([*RAN, tick(10, outcome="fenced")], "1 tick of an old leader: refused, since a newer one was there."),
        ([tick(10, outcome="ok", enqueued=1)], "1 job was enqueued for stuck rows."),
        ([tick(10, outcome="ok", skipped=5)], "5 times a row was skipped, since its job was still to be done."),
    ],
)
def test_what_became_of_ticks_is_said(ticks: Iterable[PlannedTick], said: str) -> None:
    assert said in findings(case(ticks=ticks))


def test_ticks_of_before_the_case_are_not_counted() -> None:
    said = findings(case(ticks=[tick(-5, outcome="missed", cause="no_leader"), *RAN]))

    assert "All 2 planned ticks ran at their time, none was missed." in said


def test_who_led_is_said() -> None:
    alone = [series("dispatcher-1", start=-60, end=59, led=(-60, 60)), series("dispatcher-2", start=-60, end=59)]
    after_a_kill = [
        series("dispatcher-1", start=-60, end=10, led=(-60, 60)),
        series("dispatcher-2", start=-60, end=59, led=(26, 60)),
    ]

    assert findings(case(leaders=alone))[0] == "One dispatcher leads from the beginning to the end: dispatcher-1."
    assert findings(case(leaders=after_a_kill))[:2] == [
        "The lead goes from dispatcher-1 to dispatcher-2.",
        "Nobody leads from 12 s to 24 s, to within 2 s.",
    ]
