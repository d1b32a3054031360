"""Show what a tick would do."""

from sweephand.cli.tables import Cell, Column, write_facts, write_heading, write_line, write_table
from sweephand.postgres.plans import SMALL_TABLE_ROWS, TableRead
from sweephand.postgres.preview import Preview
from sweephand.sweep import Sweep

_FATE_STYLES = {"would": "green", "duplicate": "yellow", "refused:": "red"}

_REASON = ", for which a job, or another row, stands already"


def write_preview(preview: Preview, *, app: str, sweep: Sweep) -> None:
    """Write the preview's numbers, its first rows and the plan."""
    write_line(f"A tick of {app}/{sweep.name} now would do this; nothing was written.", style="bold")
    write_line("")
    at_least = "at least " if preview.matching >= preview.matching_bound else ""
    full = f" (its limit is {preview.limit:,})" if preview.enqueued >= preview.limit else ""
    facts: list[tuple[str, str | Cell]] = [
        ("matching", f"{at_least}{_rows(preview.matching)}"),
        ("looked at", _rows(preview.considered)),
        ("enqueued", f"{preview.enqueued:,} {sweep.job.kind} in queue {sweep.job.queue}{full}"),
        ("duplicates", _rows(preview.skipped_duplicates) + _REASON if preview.skipped_duplicates else "0 rows"),
        ("refused", Cell(_rows(preview.refused), "red") if preview.refused else "0 rows"),
    ]
    if preview.is_truncated:
        bound = f"reached at {_rows(preview.scan_bound)} before {preview.limit:,} new ones were found"
        facts.append(("scan bound", Cell(bound, "yellow")))
    facts.append(("cost", f"{preview.plan.cost:,.0f} by the planner's estimate (1 is a page of a table, read in order)"))
    facts += [("reads", Cell(_read_text(read), "red" if read.is_costly else "")) for read in preview.plan.reads]
    facts += [("advice", Cell(advice, "yellow")) for advice in preview.advice]
    write_facts(facts)
    if preview.refusals:
        write_heading("Refused rows")
        for refusal in preview.refusals:
            write_line(f"  {refusal}")
    if preview.first_rows:
        write_heading("First rows")
        columns = (Column("FATE"), Column("ARGUMENTS", least=20))
        rows: list[list[str | Cell]] = [
            [Cell(row.fate, _FATE_STYLES.get(row.fate.split()[0], "")), row.args] for row in preview.first_rows
        ]
        write_table(columns, rows, nothing="")


def _read_text(read: TableRead) -> str:
    table = read.table if read.schema == "public" else f"{read.schema}.{read.table}"
    if read.index is not None:
        return f"{table} by the index {read.index}"
    small = f", which is fine up to {SMALL_TABLE_ROWS:,}" if not read.is_costly else ""
    return f"sequential scan of {table} ({_rows(read.table_rows)}{small})"


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"
