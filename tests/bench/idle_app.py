"""An application whose one sweep finds nothing."""

from datetime import timedelta

from sqlalchemy import Select, column, func, select, true
from sqlalchemy.sql.selectable import TableValuedAlias

from sweephand import App

app = App("idle")


@app.job()
def mend(row_id: int) -> None:
    """Do nothing: no row is ever found."""
    del row_id


@app.sweep(every=timedelta(seconds=60), enqueues=mend)
def broken_rows() -> Select[int]:
    """Select from no rows at all."""
    rows: TableValuedAlias = func.generate_series(1, 0).table_valued("row_id").render_derived()
    return select(column("row_id")).select_from(rows).where(true()).order_by(column("row_id"))
