"""How the demo reads its processes' logs."""

from sweephand.demo.lines import read_line


def test_a_dispatch_is_read_with_its_counts() -> None:
    line = read_line(
        "dispatcher",
        "2026-11-30T17:06:37.022Z info dispatched sweep=stuck_publications tick=3 enqueued=5 skipped_duplicates=7",
    )

    assert (line.role, line.level, line.event) == ("dispatcher", "info", "dispatched")
    assert line.facts["tick"] == "3"
    assert (line.number("enqueued"), line.number("skipped_duplicates")) == (5, 7)
    assert line.text == "dispatched sweep=stuck_publications tick=3 enqueued=5 skipped_duplicates=7"


def test_the_event_of_a_job_comes_after_its_subject() -> None:
    line = read_line(
        "worker",
        '2026-11-30T17:06:37.022Z warning job=53 kind=publish_product attempt=1 product_id=9: failed error="a=b: c"',
    )

    assert (line.level, line.event) == ("warning", "failed")
    assert line.facts["product_id"] == "9"
    assert line.facts["error"] == '"a=b: c"'


def test_a_line_of_another_form_is_kept_whole() -> None:
    line = read_line("api", "Error: DATABASE_URL: is not set")

    assert (line.level, line.event, line.text) == ("", "", "Error: DATABASE_URL: is not set")
    assert line.number("enqueued") == 0
