import pytest

from e2e.report.axis import view_of
from e2e.report.lead import Leadership, leadership
from e2e.report.records import CaseRecord
from e2e.report.spans import Span
from tests.e2e_report.made_up import case, series, tick

FIRST, SECOND = "shop-dispatcher-75cc69bb55-aaaaa_1", "shop-dispatcher-75cc69bb55-bbbbb_2"


def _leadership(of: CaseRecord) -> Leadership:
    return leadership(of, view=view_of(of))


def test_scrapes_and_ticks_of_one_process_come_together_by_their_time() -> None:
    leaders = [
        series("10.0.0.1:9090", start=-60, end=59, led=(-60, 21)),
        series("10.0.0.2:9090", start=-60, end=59, led=(21, 60)),
    ]
    ticks = [tick(planned, dispatcher=FIRST if planned < 21 else SECOND, term=1 + (planned > 21)) for planned in range(0, 60, 5)]

    led = _leadership(case(ticks=ticks, leaders=leaders))

    assert [(lane.name, lane.terms) for lane in led.lanes] == [("aaaaa", (1,)), ("bbbbb", (2,))]
    assert led.nobody == ()


def test_a_killed_leader_may_have_led_for_one_more_scrape_and_then_nobody_does_until_the_next() -> None:
    leaders = [
        series("10.0.0.1:9090", start=-60, end=10, led=(-60, 60)),
        series("10.0.0.2:9090", start=-60, end=59, led=(26, 60)),
    ]

    led = _leadership(case(leaders=leaders))

    assert led.nobody == (Span(12, 24),)
    assert led.lanes[0].unsure[-1] == Span(10, 12)
    assert led.lanes[0].alive == (Span(-60, 10),)


def test_a_tick_tells_of_a_lead_before_the_scrape_does() -> None:
    leaders = [series("10.0.0.1:9090", start=-60, end=59, led=(26, 60))]
    ticks = [tick(25), tick(30)]

    led = _leadership(case(ticks=ticks, leaders=leaders))

    assert [lead.span.start for lead in led.lanes[0].leads] == [25.01]


def test_where_nothing_was_scraped_nothing_is_said_of_who_leads() -> None:
    leaders = [series("10.0.0.1:9090", start=-60, end=10, led=(-60, 60))]

    led = _leadership(case(leaders=leaders))

    assert led.nobody == ()


def test_the_ledger_bears_out_that_nobody_led_while_nothing_was_there_to_be_scraped() -> None:
    ticks = [tick(0), tick(5, outcome="collapsed", cause="no_leader", covers=9, term=2, dispatcher=SECOND)]
    ticks += [tick(50, reason="run_on_start", term=2, dispatcher=SECOND)]
    leaders = [
        series("10.0.0.1:9090", start=-60, end=2, led=(-60, 60)),
        series("10.0.0.2:9090", start=50, end=59, led=(50, 60)),
    ]

    led = _leadership(case(ticks=ticks, leaders=leaders))

    assert [(round(span.start), round(span.end)) for span in led.nobody] == [(4, 48)]


def test_a_pod_that_started_again_keeps_its_lane() -> None:
    leaders = [series("10.0.0.1:9090", start=-60, end=59, led=(-60, 60))]
    ticks = [
        tick(5, dispatcher="shop-dispatcher-75cc69bb55-aaaaa_1"),
        tick(25, dispatcher="shop-dispatcher-75cc69bb55-aaaaa_2", term=2),
    ]

    led = _leadership(case(ticks=ticks, leaders=leaders))

    assert [(lane.name, lane.terms) for lane in led.lanes] == [("aaaaa", (1, 2))]


def test_a_process_that_came_after_another_does_not_get_its_ticks() -> None:
    leaders = [series("dispatcher-4", start=11, end=59, led=(11, 60))]
    ticks = [tick(planned, dispatcher="vm_1") for planned in (5, 10)]
    ticks += [tick(planned, dispatcher="vm_2", term=2) for planned in (15, 20, 25)]

    led = _leadership(case(ticks=ticks, leaders=leaders))

    assert [(lane.name, lane.terms) for lane in led.lanes] == [("vm 1", (1,)), ("dispatcher-4", (2,))]


@pytest.mark.parametrize(("process", "name"), [("dispatcher-4", "dispatcher-4"), ("10.0.0.1:9090", "10.0.0.1")])
def test_a_process_that_never_led_has_the_name_that_its_scrapes_have(process: str, name: str) -> None:
    led = _leadership(case(leaders=[series(process, start=-60, end=59)]))

    assert [lane.name for lane in led.lanes] == [name]


def test_a_dispatcher_that_was_never_scraped_is_known_by_its_ticks() -> None:
    led = _leadership(case(ticks=[tick(5, dispatcher="vm_34350d69"), tick(10, dispatcher="vm_34350d69")]))

    assert [(lane.name, lane.alive) for lane in led.lanes] == [("vm 34350d69", (Span(5.01, 10.01),))]
