"""The options that the operators' commands share."""

import functools
import getpass
import os
import re
import socket
from collections.abc import Callable, Mapping
from datetime import timedelta

import click

from sweephand.model.states import JobState

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MOST_SECONDS = 100 * 365 * 86_400
_QUEUE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_MAX_ID = 2**63 - 1


class Id(click.ParamType[int]):
    """Read the id of a job or tick."""

    name = "id"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        text = str(value).strip()
        if not (text.isascii() and text.isdecimal() and len(text) <= 19 and 1 <= int(text) <= _MAX_ID):
            self.fail(f"{value!r} is no id: a whole number from 1 to {_MAX_ID}", param, ctx)
        return int(text)


class Span(click.ParamType[timedelta]):
    """Read `90s`, `15m`, `24h`, `7d` or `2w`."""

    name = "span"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Return the span."""
        if isinstance(value, timedelta):
            return value
        match = _SPAN.fullmatch(str(value).strip().lower())
        seconds = float(match[1]) * _UNIT_SECONDS[match[2]] if match else 0
        if not match or not 0 < seconds <= _MOST_SECONDS:
            self.fail(f"{value!r} is no span of time; write 90s, 15m, 24h, 7d or 2w", param, ctx)
        return timedelta(seconds=seconds)


class ArgumentValue(click.ParamType[tuple[str, str]]):
    """Read `name=value`."""

    name = "name=value"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return the name and the value."""
        if isinstance(value, tuple):
            return value
        name, separator, text = str(value).partition("=")
        if not separator or not name:
            self.fail(f"{value!r} is not name=value; for example product_id=7", param, ctx)
        return name, text


class QueueName(click.ParamType[str]):
    """Read the name of a queue."""

    name = "queue"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name."""
        if not _QUEUE.fullmatch(str(value)):
            self.fail(f"{value!r} is no queue's name: 1 to 40 of a-z, 0-9, _ . -, first a letter or digit", param, ctx)
        return str(value)


json_option = click.option("--json", "is_json", is_flag=True, help="Write one JSON document, for programs.")


def who_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add --by and --note, which the audit keeps."""
    by = click.option("--by", default=this_user, help="Who does it, for the audit; user@host if not given.")
    note = click.option("--note", help="Why, for the audit and for those who look later.")
    return by(note(command))


def limit_option(default: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --limit."""
    return click.option(
        "--limit", type=click.IntRange(1, 10_000), default=default, show_default=True, help="How many rows at most."
    )


def since_option(default: str | None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add --since."""
    words = "Look back so far, as in 90s, 15m, 24h, 7d." if default else "Look back so far only, as in 90s, 15m, 24h, 7d."
    return click.option("--since", type=Span(), default=default, show_default=default is not None, metavar="SPAN", help=words)


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose jobs; the command gets them as one JobFilter, `which`."""

    @functools.wraps(command)
    def with_filter(
        *,
        state: tuple[str, ...],
        kind: str | None,
        queue: str | None,
        older_than: timedelta | None,
        tick: int | None,
        arg: tuple[tuple[str, str], ...],
        **others: object,
    ) -> None:
        from sweephand.postgres.job_filter import JobFilter

        which = JobFilter(
            states=tuple(JobState(name) for name in dict.fromkeys(state)),
            kind=kind,
            queue=queue,
            older_than=older_than,
            tick_id=tick,
            args=_by_name(arg),
        )
        command(which=which, **others)

    states = [state.value for state in JobState]
    options = (
        click.option(
            "--state", type=click.Choice(states), multiple=True, metavar="STATE", help=f"In a state: {' '.join(states)}."
        ),
        click.option("--kind", help="Of this kind."),
        click.option("--queue", type=QueueName(), help="Of this queue."),
        click.option("--older-than", type=Span(), metavar="SPAN", help="Enqueued longer ago than 90s, 15m, 24h, 7d."),
        click.option("--tick", type=Id(), metavar="ID", help="Enqueued by this tick."),
        click.option("--arg", type=ArgumentValue(), multiple=True, metavar="NAME=VALUE", help="With this argument."),
    )
    for option in reversed(options):
        with_filter = option(with_filter)
    return with_filter


def this_user() -> str:
    """Return who runs the command, as `user@host`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without an entry in the password file
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def _by_name(pairs: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    given: dict[str, str] = {}
    for name, value in pairs:
        if given.get(name, value) != value:
            raise click.UsageError(f"--arg {name} is given twice with different values; no job has both")
        given[name] = value
    return given
