"""`sweephand sweeps`: see what is swept and when, pause, run now, and try a sweep without doing anything."""

from datetime import timedelta

import click

from sweephand.cli.options import Span, json_option, limit_option, since_option, who_options
from sweephand.cli.output import utc_text, write_json

_OUTCOMES = ("ok", "empty", "error", "paused", "skipped_overlap", "fenced", "missed", "collapsed")


@click.group()
def sweeps() -> None:
    """See, pause, run and try sweeps.

    A sweep is named NAME, or APP/NAME if several applications in the database have one of this name.
    """


@sweeps.command("list")
@click.option("--app", "app_target", metavar="MODULE:ATTRIBUTE", help="Compare with this application's code.")
@json_option
def list_sweeps(*, app_target: str | None, is_json: bool) -> None:
    """List all sweeps of the database: next ticks, last runs, missed ones.

    MISSED counts ticks of the last 24 hours that did not run at their time, whether or not a later one made up for them.
    An orphan is in the code of its application's leader no longer, and does not tick.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.sweep_code import SweepCode
    from sweephand.cli.sweep_tables import sweeps_document, write_sweeps
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import read_sweeps

    code = SweepCode.load(app_target) if app_target else None
    with open_database() as connection, reading(connection):
        view = read_sweeps(connection)
    if is_json:
        write_json(**sweeps_document(view, code))
    else:
        write_sweeps(view, code)


@sweeps.command()
@click.argument("name")
@click.option("--app", "app_target", metavar="MODULE:ATTRIBUTE", help="Compare with this application's code.")
@json_option
def show(*, name: str, app_target: str | None, is_json: bool) -> None:
    """Show one sweep: rules, ticks, who leads, who paused or ran it."""
    from sweephand.cli.database import open_database
    from sweephand.cli.sweep_code import SweepCode
    from sweephand.cli.sweep_tables import sweep_document, write_sweep
    from sweephand.postgres.audit import read_audit
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import find_sweep, read_sweeps
    from sweephand.postgres.tick_views import TickFilter, read_ticks

    code = SweepCode.load(app_target) if app_target else None
    with open_database() as connection, reading(connection):
        found = find_sweep(connection, name)
        view = read_sweeps(connection)
        ticks = read_ticks(connection, TickFilter(sweep=(found.app, found.name)), limit=5)
        audit = read_audit(connection, str(found))
    if is_json:
        write_json(**sweep_document(view, found, code=code, ticks=ticks, audit=audit))
    else:
        write_sweep(view, found, code=code, ticks=ticks, audit=audit)


@sweeps.command()
@click.argument("name")
@who_options
@json_option
def pause(*, name: str, by: str, note: str | None, is_json: bool) -> None:
    """Let the ticks of a sweep pass by, until it is resumed.

    The ledger keeps them as paused; `sweeps run` still works. Pausing again replaces who and why.
    """
    from sweephand.cli.database import open_database
    from sweephand.postgres.sweep_actions import pause_sweep
    from sweephand.postgres.sweep_views import find_sweep

    with open_database() as connection:
        sweep = find_sweep(connection, name)
        is_changed = pause_sweep(connection, sweep, by=by, note=note)
    if is_json:
        write_json(sweep=str(sweep), is_paused=True, is_changed=is_changed)
    else:
        click.echo(f"{sweep} is paused" if is_changed else f"{sweep} was paused already; who and why are replaced")


@sweeps.command()
@click.argument("name")
@who_options
@json_option
def resume(*, name: str, by: str, note: str | None, is_json: bool) -> None:
    """Let a paused sweep tick again, from its next planned time on."""
    from sweephand.cli.database import open_database
    from sweephand.postgres.sweep_actions import resume_sweep
    from sweephand.postgres.sweep_views import find_sweep

    with open_database() as connection:
        sweep = find_sweep(connection, name)
        is_changed = resume_sweep(connection, sweep, by=by, note=note)
    if is_json:
        write_json(sweep=str(sweep), is_paused=False, is_changed=is_changed)
    else:
        click.echo(f"{sweep} ticks again" if is_changed else f"{sweep} was not paused")


@sweeps.command()
@click.argument("name")
@click.option("--wait", "is_waiting", is_flag=True, help="Wait for the tick and show it.")
@click.option("--timeout", type=Span(), default="60s", show_default=True, metavar="SPAN", help="How long --wait waits.")
@who_options
@json_option
def run(*, name: str, is_waiting: bool, timeout: timedelta, by: str, note: str | None, is_json: bool) -> None:
    """Ask the leader to tick a sweep now, beside its planned ticks, even if it is paused."""
    from sweephand.cli.database import open_database
    from sweephand.cli.tick_table import write_ticks
    from sweephand.cli.waiting import wait_for_tick
    from sweephand.postgres.sweep_actions import request_run
    from sweephand.postgres.sweep_views import find_sweep, read_now

    with open_database() as connection:
        sweep = find_sweep(connection, name)
        request = request_run(connection, sweep, by=by, note=note)
        tick = wait_for_tick(connection, sweep, request.requested_at, timeout=timeout) if is_waiting else None
        now = read_now(connection)
    if is_json:
        write_json(sweep=str(sweep), requested_at=request.requested_at, is_new=request.is_new, tick=tick)
    elif tick is not None:
        write_ticks([tick], now=now)
    else:
        asked = "asked for" if request.is_new else "had been asked for already, and has not run yet:"
        click.echo(f"a tick of {sweep} is {asked} {utc_text(request.requested_at)}; see: sweephand sweeps ticks {sweep}")


@sweeps.command()
@click.argument("name")
@click.option("--app", "app_target", metavar="MODULE:ATTRIBUTE", help="The application; SWEEPHAND_APP if not given.")
@json_option
def preview(*, name: str, app_target: str | None, is_json: bool) -> None:
    """Say what a tick would do now, without doing it.

    A dry run of the sweep in the application's code, in a transaction that cannot write: rows, duplicates, refused rows, the
    plan's cost, and whether an index serves it.
    """
    from sweephand.cli.preview_table import write_preview
    from sweephand.cli.start import load_named_app, read_settings
    from sweephand.cli.sweep_code import SweepCode
    from sweephand.postgres.operator_session import operator_session
    from sweephand.postgres.preview import preview as dry_run

    settings = read_settings(app_target)
    code = SweepCode(load_named_app(settings))
    sweep = code.sweep(name)
    with operator_session(settings.database_url) as connection:
        found = dry_run(connection, sweep)
    if is_json:
        write_json(sweep=f"{code.app_name}/{sweep.name}", kind=sweep.job.kind, queue=sweep.job.queue, preview=found)
    else:
        write_preview(found, app=code.app_name, sweep=sweep)


@sweeps.command()
@click.argument("name", required=False)
@click.option(
    "--outcome", type=click.Choice(_OUTCOMES), multiple=True, metavar="OUTCOME", help=f"With an outcome: {' '.join(_OUTCOMES)}."
)
@since_option(None)
@limit_option(20)
@json_option
def ticks(*, name: str | None, outcome: tuple[str, ...], since: timedelta | None, limit: int, is_json: bool) -> None:
    """List the ledger: what each tick did, or why it did not run.

    The latest planned tick comes first. LATE is how long after its planned time a tick started.
    """
    from sweephand.cli.database import open_database
    from sweephand.cli.tick_table import write_ticks
    from sweephand.model.ticks import TickOutcome
    from sweephand.postgres.operator_session import reading
    from sweephand.postgres.sweep_views import find_sweep, read_now
    from sweephand.postgres.tick_views import TickFilter, read_ticks

    with open_database() as connection, reading(connection):
        found = None if name is None else find_sweep(connection, name)
        which = TickFilter(
            sweep=None if found is None else (found.app, found.name),
            outcomes=[TickOutcome(value) for value in outcome],
            since=since,
        )
        listed = read_ticks(connection, which, limit=limit)
        now = read_now(connection)
    if is_json:
        write_json(ticks=listed)
    else:
        write_ticks(listed, now=now, is_of_one_sweep=found is not None)
