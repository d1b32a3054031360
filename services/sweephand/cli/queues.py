"""`sweephand queues`: see what waits in each queue, pause and bound queues."""

from typing import TYPE_CHECKING

import click

from sweephand.cli.options import QueueName, json_option, who_options
from sweephand.cli.output import write_json

if TYPE_CHECKING:
    import psycopg

_NO_LIMIT = "none"


class _ConcurrencyLimit(click.ParamType[int | str]):
    """Read a whole number from 1 on, or `none`."""

    name = "N|none"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or `none`."""
        text = str(value).strip().lower()
        if text == _NO_LIMIT:
            return text
        if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
            self.fail(f"{value!r} is neither a number from 1 to 1,000,000 nor none", param, ctx)
        return int(text)


@click.group()
def queues() -> None:
    """See, pause and bound queues."""


@queues.command("list")
@json_option
def list_queues(*, is_json: bool) -> None:
    """List the queues: what waits and runs, who serves them, which are paused."""
    from sweephand.cli.database import open_database
    from sweephand.cli.queue_table import write_queues
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.queue_views import read_queues
    from sweephand.postgres.sweep_views import read_now

    with open_database() as connection, reading(connection):
        found = read_queues(connection)
        now = read_now(connection)
    if is_json:
        write_json(now=now, queues=found)
    else:
        write_queues(found, now=now)


@queues.command()
@click.argument("queue", type=QueueName())
@who_options
@json_option
def pause(*, queue: str, by: str, note: str | None, is_json: bool) -> None:
    """Let workers take no more jobs of a queue.

    What runs goes on. The queue stays paused until it is resumed.
    """
    from sweephand.cli.database import open_database
    from sweephand.postgres import queue_actions

    with open_database() as connection:
        _warn_of_unknown(connection, queue)
        queue_actions.pause(connection, queue, by=by, note=note)
    if is_json:
        write_json(queue=queue, is_paused=True)
    else:
        click.echo(f"queue {queue} is paused")


@queues.command()
@click.argument("queue", type=QueueName())
@who_options
@json_option
def resume(*, queue: str, by: str, note: str | None, is_json: bool) -> None:
    """Let workers take jobs of a paused queue again; they are notified."""
    from sweephand.cli.database import open_database
    from sweephand.postgres import queue_actions

    with open_database() as connection:
        is_changed = queue_actions.resume(connection, queue, by=by, note=note)
    if is_json:
        write_json(queue=queue, is_paused=False, is_changed=is_changed)
    else:
        click.echo(f"queue {queue} is served again" if is_changed else f"queue {queue} was not paused")


@queues.command()
@click.argument("queue", type=QueueName())
@click.argument("limit", metavar="N|none", type=_ConcurrencyLimit())
@who_options
@json_option
def limit(*, queue: str, limit: int | str, by: str, note: str | None, is_json: bool) -> None:
    """Let at most N jobs of a queue run at once; none lifts the bound.

    The bound is for all workers together. Workers follow with their next heartbeat.
    """
    from sweephand.cli.database import open_database
    from sweephand.postgres import queue_actions

    bound = limit if isinstance(limit, int) else None
    with open_database() as connection:
        _warn_of_unknown(connection, queue)
        queue_actions.limit(connection, queue, bound, by=by, note=note)
    if is_json:
        write_json(queue=queue, concurrency_limit=bound)
    elif bound is None:
        click.echo(f"queue {queue} has no limit")
    else:
        click.echo(f"queue {queue} runs at most {bound:,} job{'' if bound == 1 else 's'} at once")


def _warn_of_unknown(connection: "psycopg.Connection", queue: str) -> None:
    """Say that nothing has used a queue of this name yet: it may be meant so, or be a slip."""
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.queue_views import read_queues

    with reading(connection):
        known = [found.name for found in read_queues(connection)]
    if queue not in known:
        click.echo(f"Note: nothing has used a queue {queue} so far; known are {', '.join(known) or 'none'}", err=True)
