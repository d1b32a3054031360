"""Show rows of the ledger."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from sweephand.cli.output import relative_text, span_text, utc_text
from sweephand.cli.tables import Cell, Column, write_table
from sweephand.postgres.tick_views import TickView

OUTCOME_STYLES: Mapping[str, str] = MappingProxyType(
    {
        "ok": "green",
        "empty": "dim",
        "error": "red",
        "paused": "yellow",
        "skipped_overlap": "yellow",
        "fenced": "magenta",
        "missed": "red",
        "collapsed": "yellow",
    }
)


def write_ticks(ticks: Sequence[TickView], *, now: datetime, is_of_one_sweep: bool = False) -> None:
    """Write rows of the ledger; LATE is how long after its planned time a tick started."""
    columns = (
        Column("PLANNED"),
        Column("AGO", yields=3),
        *(() if is_of_one_sweep else (Column("SWEEP", least=24),)),
        Column("OUTCOME"),
        Column("REASON", yields=6),
        Column("LATE", is_number=True, yields=5),
        Column("TOOK", is_number=True, yields=4),
        Column("ENQUEUED", is_number=True),
        Column("DUPLICATES", is_number=True, yields=2),
        Column("REFUSED", is_number=True, yields=8),
        Column("TERM", is_number=True, yields=7),
        Column("TICK", is_number=True, yields=9),
        Column("NOTE", least=24),
    )
    rows: list[list[str | Cell]] = []
    for tick in ticks:
        ran = tick.started_at is not None
        row: list[str | Cell] = [
            utc_text(tick.planned_at),
            relative_text(tick.planned_at, now=now),
            *([] if is_of_one_sweep else [f"{tick.app}/{tick.sweep}"]),
            Cell(tick.outcome, OUTCOME_STYLES.get(tick.outcome, "")),
            tick.reason,
            span_text(tick.started_at - tick.planned_at) if tick.started_at else "",
            span_text(tick.ended_at - tick.started_at) if tick.started_at and tick.ended_at else "",
            str(tick.enqueued) if ran else "",
            str(tick.skipped_duplicates) if ran else "",
            str(tick.refused) if ran else "",
            str(tick.term),
            str(tick.id),
            _tick_note(tick),
        ]
        rows.append(row)
    write_table(columns, rows, nothing="no ticks")


def _tick_note(tick: TickView) -> str:
    parts = [
        (tick.cause or "").replace("_", " ") if tick.cause != tick.outcome else "",
        f"stands for {tick.covers:,} ticks" if tick.covers > 1 else "",
        f"made up by tick {tick.made_up_by}" if tick.made_up_by is not None else "",
        "scan bound reached" if tick.scan_truncated else "",
        tick.error or "",
    ]
    return "; ".join(part for part in parts if part)
