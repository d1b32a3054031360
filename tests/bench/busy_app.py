"""An application with ten sweeps that tick every second and find nothing, and jobs that do nothing."""

from datetime import timedelta

from sqlalchemy import Select, column, func, select
from sqlalchemy.sql.selectable import TableValuedAlias

from sweephand import App

app = App("busy")


@app.job()
def work(row_id: int) -> None:
    """Do nothing: the cores are kept busy by how many there are."""
    del row_id


def _no_rows() -> Select[int]:
    rows: TableValuedAlias = func.generate_series(1, 0).table_valued("row_id").render_derived()
    return select(column("row_id")).select_from(rows).order_by(column("row_id"))


for number in range(10):
    app.sweep(every=timedelta(seconds=1), enqueues=work, name=f"rows_{number}")(_no_rows)
