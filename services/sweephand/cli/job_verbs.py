"""`sweephand jobs retry | cancel | discard | delete`: change jobs that are named by id, or that a filter finds."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from sweephand.cli.options import Id, filter_options, json_option, who_options
from sweephand.cli.output import write_json
from sweephand.model.lifecycle import VERBS, Effect, JobVerb

if TYPE_CHECKING:
    import psycopg

    from sweephand.postgres.job_actions import ActionReport
    from sweephand.postgres.job_filter import JobFilter

_SHOWN_REFUSALS = 10


class _Chosen(TypedDict):
    """Be what the command line said; `which` holds the filter's options."""

    ids: tuple[int, ...]
    which: "JobFilter"
    is_all: bool
    is_sure: bool
    by: str
    note: str | None
    is_json: bool


def _verb_options(command: Callable[..., None]) -> Callable[..., None]:
    ids = click.argument("ids", metavar="[ID]...", nargs=-1, type=Id())
    everything = click.option("--all", "is_all", is_flag=True, help="All jobs that the verb means, without a filter.")
    yes = click.option("--yes", "is_sure", is_flag=True, help="Do not ask: for scripts.")
    return ids(filter_options(everything(yes(who_options(json_option(command))))))


@click.command()
@_verb_options
def retry(**chosen: Unpack[_Chosen]) -> None:
    """Make jobs available now, with at least one more attempt.

    A filter without --state means retryable and discarded jobs. Completed, cancelled and scheduled ones are retried when
    --state or their id says so.
    """
    _run(JobVerb.RETRY, **chosen)


@click.command()
@_verb_options
def cancel(**chosen: Unpack[_Chosen]) -> None:
    """Cancel jobs that are not finished.

    A running one is interrupted: its worker hears of it within 2 seconds, with --note as the reason.
    """
    _run(JobVerb.CANCEL, **chosen)


@click.command()
@_verb_options
def discard(**chosen: Unpack[_Chosen]) -> None:
    """Discard jobs that wait: they never run, and stay on record as failed.

    A running one is refused: wait for it, or cancel it.
    """
    _run(JobVerb.DISCARD, **chosen)


@click.command()
@_verb_options
def delete(**chosen: Unpack[_Chosen]) -> None:
    """Delete jobs with their attempts, without a trace but in the audit.

    A filter without --state means finished jobs. Waiting ones are deleted when --state or their id says so; a running one is
    refused.
    """
    _run(JobVerb.DELETE, **chosen)


def _run(verb: JobVerb, **chosen: Unpack[_Chosen]) -> None:
    ids, which, by, note = chosen["ids"], chosen["which"], chosen["by"], chosen["note"]
    if ids and (chosen["is_all"] or not which.is_empty):
        raise click.UsageError("give ids or a filter, not both")
    if not ids and which.is_empty and not chosen["is_all"]:
        raise click.UsageError(f"without ids or a filter this would {verb} every job; add a filter such as --kind, or --all")

    from sweephand.cli.database import open_database
    from sweephand.postgres.job_actions import act_on_jobs

    with open_database() as connection:
        if ids:
            report = act_on_jobs(connection, verb, ids, by=by, note=note)
        else:
            report = _act_on_filter(connection, verb, which, is_sure=chosen["is_sure"], by=by, note=note)
    _tell(verb, report, is_json=chosen["is_json"], is_named=bool(ids))
    if ids and report.refused:
        sys.exit(1)


def _act_on_filter(
    connection: "psycopg.Connection", verb: JobVerb, which: "JobFilter", *, is_sure: bool, by: str, note: str | None
) -> "ActionReport":
    from sweephand.postgres.job_actions import ActionReport, act_on_jobs, find_jobs, states_for
    from sweephand.postgres.operator_session import reading

    meant = which.in_states(states_for(verb, which))
    with reading(connection):
        found = find_jobs(connection, meant)
    if not found.ids:
        return ActionReport((), ())
    if not is_sure:
        _ask(f"{found} would be {verb.past}")
    return act_on_jobs(connection, verb, found.ids, by=by, note=note, which=meant)


def _ask(question: str) -> None:
    """Go on if the answer is yes, else end with exit code 1."""
    try:
        is_sure = click.confirm(f"{question}. Go on?", err=True)
    except click.Abort:
        click.echo(err=True)
        is_sure = False
    if not is_sure:
        click.echo("Nothing was changed; --yes goes on without asking.", err=True)
        raise click.exceptions.Exit(1)


def _tell(verb: JobVerb, report: "ActionReport", *, is_json: bool, is_named: bool) -> None:
    if is_json:
        refused = [{"id": str(job.id), "reason": job.reason} for job in report.refused]
        write_json(verb=verb, changed=[str(job.id) for job in report.changed], refused=refused)
    elif is_named:
        for job in report.changed:
            effect = VERBS[verb].by_state[job.before]
            if isinstance(effect, Effect):
                click.echo(f"job {job.id} {effect.what}")
    else:
        count = len(report.changed)
        click.echo(f"{count:,} job{'' if count == 1 else 's'} {verb.past}" if count else "no job matches; nothing was changed")
    for refused_job in report.refused[:_SHOWN_REFUSALS]:
        click.echo(f"{'Error' if is_named else 'left alone'}: {refused_job.reason}", err=True)
    if len(report.refused) > _SHOWN_REFUSALS:
        click.echo(f"… and {len(report.refused) - _SHOWN_REFUSALS:,} more", err=True)
