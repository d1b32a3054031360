"""Log lines have one form, whoever writes them."""

import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import pytest
import structlog

from sweephand.settings import load_settings
from sweephand.telemetry import configure_logging


class Colour(StrEnum):
    RED = "red"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def untouched_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()


def _configure(*, log_format: str = "console", log_level: str = "info", stream: io.StringIO | None = None) -> io.StringIO:
    lines = io.StringIO() if stream is None else stream
    settings = load_settings(database_url="postgresql://db/shop", log_format=log_format, log_level=log_level)
    configure_logging(settings, stream=lines)
    return lines


def _untimed(lines: io.StringIO) -> list[str]:
    """Return the lines without their times, which are checked for their form."""
    untimed = []
    for line in lines.getvalue().splitlines():
        time, _, rest = line.partition(" ")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time)
        untimed.append(rest)
    return untimed


def test_an_event_comes_first_and_its_facts_after_it() -> None:
    lines = _configure()

    structlog.get_logger().info(
        "dispatched",
        sweep="stuck_publications",
        tick=datetime(2026, 11, 30, 16, tzinfo=UTC),
        enqueued=3,
        skipped_duplicates=0,
    )

    expected = "info dispatched sweep=stuck_publications tick=2026-11-30T16:00:00Z enqueued=3 skipped_duplicates=0"
    assert _untimed(lines) == [expected]


def test_a_job_comes_before_its_events() -> None:
    lines = _configure()
    log = structlog.get_logger().bind(job=53, kind="publish_product", attempt=1, product_id=9)

    log.info("started")
    log.warning("failed", retry_in_seconds=16.0, error="no stock")

    assert _untimed(lines) == [
        "info job=53 kind=publish_product attempt=1 product_id=9: started",
        'warning job=53 kind=publish_product attempt=1 product_id=9: failed retry_in_seconds=16 error="no stock"',
    ]


def test_lines_of_a_jobs_own_code_name_the_job() -> None:
    lines = _configure()

    with structlog.contextvars.bound_contextvars(attempt=1, kind="publish_product", job=53):
        structlog.get_logger().info("reserved", stock=4)
        logging.getLogger("shop.mail").warning("sent to %s", "someone")

    assert _untimed(lines) == [
        "info job=53 kind=publish_product attempt=1: reserved stock=4",
        "warning job=53 kind=publish_product attempt=1: sent to someone logger=shop.mail",
    ]


def test_bound_facts_without_a_job_follow_the_event() -> None:
    lines = _configure()

    structlog.get_logger().bind(identity="dispatcher-0").info("leader_elected", term=4)

    assert _untimed(lines) == ["info leader_elected identity=dispatcher-0 term=4"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("two words", '"two words"'),
        ("", '""'),
        ('say "hi"', r'"say \"hi\""'),
        ("a=b", '"a=b"'),
        ("line\nbreak", r'"line\nbreak"'),
        ("bell\x07", r'"bell\u0007"'),
        ("\x1b[31mred", r'"\u001b[31mred"'),
        ("lone \ud800", r'"lone \ud800"'),
        ("stück", "stück"),
        (True, "true"),
        (None, "null"),
        (0.25, "0.25"),
        (2**63, "9223372036854775808"),
        (Colour.RED, "red"),
        (timedelta(seconds=90), "90.0"),
        (["a", 1], r'"[\"a\", 1]"'),
        (datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC), "2026-01-02T03:04:05.678Z"),
    ],
)
def test_a_value_is_one_word_or_quoted(value: object, shown: str) -> None:
    lines = _configure()

    structlog.get_logger().info("seen", value=value)

    assert _untimed(lines) == [f"info seen value={shown}"]


def test_an_event_cannot_forge_a_line() -> None:
    lines = _configure()

    logging.getLogger("x").error("one\n2026-11-30T16:00:00.123Z info forged")

    assert len(lines.getvalue().splitlines()) == 1


def test_a_traceback_follows_its_line() -> None:
    lines = _configure()

    try:
        _fail()
    except ValueError:
        structlog.get_logger().exception("request_failed", path="/x")

    first, second, *_, last = lines.getvalue().splitlines()
    assert first.endswith("error request_failed path=/x")
    assert second == "Traceback (most recent call last):"
    assert last == "ValueError: 7"


def test_json_has_plain_keys() -> None:
    lines = _configure(log_format="json")

    structlog.get_logger().bind(job=53, kind="publish_product").info("started", at=datetime(2026, 1, 2, tzinfo=UTC))

    (line,) = lines.getvalue().splitlines()
    found = json.loads(line)
    assert list(found) == ["timestamp", "level", "event", "job", "kind", "at"]
    assert found["timestamp"].endswith("Z")
    assert {key: found[key] for key in ("level", "event", "job", "kind", "at")} == {
        "level": "info",
        "event": "started",
        "job": 53,
        "kind": "publish_product",
        "at": "2026-01-02T00:00:00Z",
    }


def test_json_stays_one_line_and_ascii_whatever_happened() -> None:
    lines = _configure(log_format="json")

    try:
        _fail()
    except ValueError:
        logging.getLogger("shop").exception("broken \ud800 %s", "a\nb")

    (line,) = lines.getvalue().splitlines()
    found = json.loads(line)
    assert line.isascii()
    assert found["event"] == "broken \ud800 a\nb"
    assert found["exception"].endswith("ValueError: 7")


def test_levels_below_the_setting_are_dropped_whoever_writes_them() -> None:
    lines = _configure(log_level="warning")

    structlog.get_logger().info("quiet")
    logging.getLogger("shop").info("quiet")
    structlog.get_logger().warning("heard")

    assert _untimed(lines) == ["warning heard"]


def test_talkative_libraries_are_heard_from_warning_on() -> None:
    lines = _configure()

    for name in ("kopf.objects", "kopf.activities.probe", "aiohttp.access"):
        logging.getLogger(name).info("every two seconds")
        logging.getLogger(name).warning("trouble")

    assert [line.rpartition(" ")[2] for line in _untimed(lines)] == [
        "logger=kopf.objects",
        "logger=kopf.activities.probe",
        "logger=aiohttp.access",
    ]


def test_only_a_terminal_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = _configure(stream=Terminal())
    structlog.get_logger().info("seen")
    monkeypatch.setenv("NO_COLOR", "1")
    plain = _configure(stream=Terminal())
    structlog.get_logger().info("seen")

    assert "\x1b[" in terminal.getvalue()
    assert "\x1b[" not in plain.getvalue()


def _fail() -> None:
    raise ValueError(7)
