"""Show sweeps and ticks."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sweephand.cli.audit_table import write_audit
from sweephand.cli.output import both_texts, relative_text, span_text, utc_text
from sweephand.cli.sweep_code import SweepCode
from sweephand.cli.tables import Cell, Column, write_facts, write_heading, write_line, write_table
from sweephand.cli.tick_table import OUTCOME_STYLES, write_ticks
from sweephand.postgres.audit import AuditEntry
from sweephand.postgres.sweep_views import SweepName, SweepsView, SweepView
from sweephand.postgres.tick_views import TickView

_OVERDUE = timedelta(seconds=10)


def sweeps_document(view: SweepsView, code: SweepCode | None) -> dict[str, object]:
    """Return what `sweeps list --json` writes."""
    return {
        "now": view.now,
        "leaders": view.leaders,
        "sweeps": [
            {"sweep": sweep, "status": _status(view, sweep, code), "last_run": view.last_run(sweep)} for sweep in view.sweeps
        ],
        "unregistered": [str(name) for name in code.unregistered(view.sweeps)] if code else [],
    }


def write_sweeps(view: SweepsView, code: SweepCode | None) -> None:
    """Write the table of all sweeps, and who leads."""
    columns = (
        Column("SWEEP", least=24),
        Column("SCHEDULE", yields=1),
        Column("NEXT"),
        Column("NEXT AT", yields=5),
        Column("LAST RUN"),
        Column("ENQUEUED", is_number=True, yields=2),
        Column("DUPLICATES", is_number=True, yields=4),
        Column("MISSED", is_number=True, yields=3),
        Column("STATUS", least=20),
    )
    is_of_one_app = len({sweep.app for sweep in view.sweeps} | ({code.app_name} if code else set())) == 1
    rows = [_row(view, sweep, code, is_of_one_app=is_of_one_app) for sweep in view.sweeps]
    for name in code.unregistered(view.sweeps) if code else ():
        shown = name.name if is_of_one_app else str(name)
        rows.append([shown, "", "", "", "", "", "", "", Cell("not registered yet: no dispatcher led with this code", "yellow")])
    write_table(columns, rows, nothing="no sweep is registered; a dispatcher registers its application's when it leads")
    if view.leaders:
        write_line("")
    for leader in view.leaders:
        write_line(f"{leader.app}: {leader.holder} leads since {utc_text(leader.since)}, term {leader.term}")


def sweep_document(
    view: SweepsView, name: SweepName, *, code: SweepCode | None, ticks: Sequence[TickView], audit: Sequence[AuditEntry]
) -> dict[str, object]:
    """Return what `sweeps show --json` writes."""
    sweep = _find(view, name)
    return {
        "now": view.now,
        "sweep": sweep,
        "status": _status(view, sweep, code),
        "leader": view.leader(sweep.app),
        "last_run": view.last_run(sweep),
        "differences": code.differences(sweep) if code else [],
        "ticks": ticks,
        "audit": audit,
    }


def write_sweep(
    view: SweepsView, name: SweepName, *, code: SweepCode | None, ticks: Sequence[TickView], audit: Sequence[AuditEntry]
) -> None:
    """Write all about one sweep."""
    sweep, now = _find(view, name), view.now
    leader = view.leader(sweep.app)
    leads = f"{leader.holder}, term {leader.term}, since {utc_text(leader.since)}" if leader else "nobody yet"
    facts: list[tuple[str, str | Cell]] = [
        ("sweep", sweep.path),
        ("status", _status_cell(view, sweep, code)),
        ("schedule", f"{sweep.schedule}, on the grid from {utc_text(sweep.anchor_at)}"),
        ("next tick", both_texts(sweep.next_tick_at, now=now)),
        (
            "enqueues",
            f"{sweep.kind} in queue {sweep.queue}, at most {sweep.limit:,} a tick, of {sweep.scan_bound:,} rows looked at",
        ),
        ("rules", f"run_on_start {'yes' if sweep.run_on_start else 'no'}, catch_up {sweep.catch_up}, overlap {sweep.overlap}"),
        ("missed", _missed_text(sweep, now)),
        ("leader", leads),
    ]
    if sweep.paused_at is not None:
        why = f": {sweep.paused_note}" if sweep.paused_note else ""
        facts.insert(2, ("paused", f"{both_texts(sweep.paused_at, now=now)} by {sweep.paused_by or 'unknown'}{why}"))
    if sweep.run_requested_at is not None:
        asked = both_texts(sweep.run_requested_at, now=now)
        facts.insert(2, ("run asked", f"{asked} by {sweep.run_requested_by or 'unknown'}, not run yet"))
    facts += [("code", Cell(difference, "yellow")) for difference in (code.differences(sweep) if code else ())]
    write_facts(facts)
    write_heading("Latest ticks")
    write_ticks(ticks, now=now, is_of_one_sweep=True)
    if audit:
        write_heading("Who did what")
        write_audit(audit, now=now)


def _row(view: SweepsView, sweep: SweepView, code: SweepCode | None, *, is_of_one_app: bool) -> list[str | Cell]:
    last = view.last_run(sweep)
    ran = "never" if last is None else f"{last.outcome} {relative_text(last.started_at or last.planned_at, now=view.now)}"
    return [
        sweep.name if is_of_one_app else sweep.path,
        sweep.schedule,
        _next_cell(view, sweep, code),
        utc_text(sweep.next_tick_at),
        Cell(ran, OUTCOME_STYLES.get(last.outcome, "") if last else "dim"),
        str(last.enqueued) if last else "",
        str(last.skipped_duplicates) if last else "",
        Cell(str(sweep.missed_ticks), "red" if sweep.missed_ticks else ""),
        _status_cell(view, sweep, code),
    ]


def _next_cell(view: SweepsView, sweep: SweepView, code: SweepCode | None) -> Cell:
    match _status(view, sweep, code):
        case "orphan":
            return Cell("never", "dim")
        case "overdue":
            return Cell(f"{span_text(view.now - sweep.next_tick_at)} late", "red")
        case _:
            return Cell(relative_text(sweep.next_tick_at, now=view.now))


def _status(view: SweepsView, sweep: SweepView, code: SweepCode | None) -> str:
    if sweep.is_orphan or (code is not None and code.is_orphan(sweep)):
        return "orphan"
    if sweep.paused_at is not None:
        return "paused"
    return "overdue" if sweep.next_tick_at < view.now - _OVERDUE else "active"


def _status_cell(view: SweepsView, sweep: SweepView, code: SweepCode | None) -> Cell:
    match _status(view, sweep, code):
        case "orphan":
            where = "the leader's code" if sweep.is_orphan else "this code"
            return Cell(f"orphan: not in {where}", "magenta")
        case "paused":
            note = f": {sweep.paused_note}" if sweep.paused_note else ""
            return Cell(f"paused by {sweep.paused_by or 'unknown'}{note}", "yellow")
        case "overdue":
            return Cell("overdue: is a dispatcher running?", "red")
        case _:
            if code is not None and code.app_name != sweep.app:
                return Cell("of another application", "dim")
            return Cell("the code differs", "yellow") if code is not None and code.differences(sweep) else Cell("active")


def _missed_text(sweep: SweepView, now: datetime) -> str:
    if sweep.last_missed_at is None:
        return "none in 24h"
    return f"{sweep.missed_ticks} in 24h, the last planned {both_texts(sweep.last_missed_at, now=now)}"


def _find(view: SweepsView, name: SweepName) -> SweepView:
    return next(sweep for sweep in view.sweeps if sweep.app == name.app and sweep.name == name.name)
