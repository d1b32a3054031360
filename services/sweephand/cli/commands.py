"""The commands. Each imports its process when it runs: a worker must not carry the dispatcher's or the API's libraries."""

import sys
from datetime import timedelta
from pathlib import Path

import click

from sweephand.cli.errors import ClearErrors
from sweephand.cli.jobs import jobs
from sweephand.cli.queues import queues
from sweephand.cli.sweeps import sweeps

app_option = click.option(
    "--app",
    "app_target",
    metavar="MODULE:ATTRIBUTE",
    help="The application to run; SWEEPHAND_APP if not given.",
)


@click.group(cls=ClearErrors, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sweephand", message="%(prog)s %(version)s")
def main() -> None:
    """Run periodic work without cron: sweeps find stuck rows, jobs mend them."""


for group in (sweeps, jobs, queues):
    main.add_command(group)


@main.command()
@app_option
def api(app_target: str | None) -> None:
    """Serve the application's HTTP interface."""
    from sweephand.cli.start import load_named_app, read_settings
    from sweephand.web.process import run

    settings = read_settings(app_target)
    sys.exit(run(load_named_app(settings), settings))


@main.command()
@app_option
def worker(app_target: str | None) -> None:
    """Run the application's jobs."""
    from sweephand.cli.start import load_named_app, read_settings
    from sweephand.worker.process import run

    settings = read_settings(app_target)
    sys.exit(run(load_named_app(settings), settings))


@main.command()
@app_option
def dispatcher(app_target: str | None) -> None:
    """Run the application's sweeps while this process leads."""
    from sweephand.cli.start import load_named_app, read_settings
    from sweephand.dispatcher.process import run

    settings = read_settings(app_target)
    sys.exit(run(load_named_app(settings), settings))


@main.command()
@app_option
@click.option(
    "--wait-seconds",
    type=click.FloatRange(0, 86400),
    default=0,
    show_default=True,
    help="Wait at most so long for PostgreSQL to answer.",
)
def migrate(app_target: str | None, wait_seconds: float) -> None:
    """Bring the database's schema up to date, then the application's if it has a migration."""
    import structlog

    from sweephand.cli.start import load_named_app, read_settings
    from sweephand.cli.waiting import wait_for_database
    from sweephand.postgres.migrate import migrate as migrate_schema

    settings = read_settings(app_target)
    app = None if settings.app is None else load_named_app(settings)
    wait_for_database(settings.database_url, timeout=timedelta(seconds=wait_seconds))
    report = migrate_schema(settings.database_url)
    log = structlog.get_logger()
    log.info("schema_migrated", before=report.before, after=report.after)
    if app is not None and app.migrate is not None:
        app.migrate(settings.database_url)
        log.info("app_migrated", app=app.name)


@main.command()
@app_option
@click.option("--api-port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free port.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the embedded PostgreSQL's data here; without it they end with the command.",
)
def dev(app_target: str | None, api_port: int, data_dir: Path | None) -> None:
    """Run all processes of the application here, with a PostgreSQL of their own unless DATABASE_URL names one."""
    from sweephand.dev.command import run_dev

    sys.exit(run_dev(_target(app_target), api_port=api_port, data_dir=data_dir))


@main.command()
@app_option
@click.option("--keep", is_flag=True, help="Stay up after the summary, until Ctrl-C.")
def demo(app_target: str | None, keep: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Show the whole way on the storefront example: stuck rows found, enqueued, mended."""
    from sweephand.demo import run

    sys.exit(run(_target(app_target, default="storefront.app:create_app"), keep=keep))


def _target(app_target: str | None, *, default: str | None = None) -> str:
    import os

    from sweephand.cli.start import NO_APP

    target = app_target or os.environ.get("SWEEPHAND_APP") or default
    if not target:
        raise click.UsageError(NO_APP)
    return target
