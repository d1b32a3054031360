"""Describe a sweep: the SELECT that finds rows to mend, and the job that mends one."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sweephand.job import Job
from sweephand.model.errors import AppError
from sweephand.model.ticks import TickPolicy

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, SelectBase


@dataclass(frozen=True, slots=True)
class Sweep:
    """Be a sweep as registered with `@app.sweep`; `limit` and `scan_bound` count rows of one tick."""

    name: str
    select: "Callable[[], SelectBase]"
    job: Job[...]
    policy: TickPolicy
    limit: int
    scan_bound: int
    statement_timeout: timedelta

    def check(self, owner: str) -> None:
        """Compare the SELECT's columns with the job's parameters.

        Raises:
            AppError: a column is no parameter, a parameter without a default has no column, or the rows have no order.
        """
        select = self.select()
        columns = getattr(select, "selected_columns", None)  # a function without annotations may return anything
        if columns is None:
            raise AppError(f"{owner}: returned {type(select).__name__}; return a sqlalchemy select(…)")
        names = [column.key for column in columns]
        parameters = self.job.parameters.by_name
        for name in names:
            if name not in parameters:
                raise AppError(
                    f"{owner}: the column {name} is no parameter of {self.job.kind}, which takes {', '.join(parameters)}; "
                    f"label it: select(table.c.{name}.label('{next(iter(parameters), 'parameter')}'))"
                )
        for name, parameter in parameters.items():
            if name not in names and not parameter.has_default:
                raise AppError(f"{owner}: no column for {name}, which {self.job.kind} needs; add one with .label('{name}')")
        if not _order_of(select):
            raise AppError(f"{owner}: the rows have no order, so old ones may wait for ever; add .order_by(…), oldest first")

    def first_order(self, select: "SelectBase") -> "ColumnElement[object] | None":
        """Return what the rows are ordered by first, without its direction; None if that is a text and no column."""
        from sqlalchemy import ColumnElement
        from sqlalchemy.sql.elements import UnaryExpression

        clause: object = next(iter(_order_of(select)), None)
        while isinstance(clause, UnaryExpression) and clause.modifier is not None:  # desc, nulls last, …
            clause = clause.element
        if getattr(clause, "__visit_name__", "").endswith("label_reference"):  # a label of the SELECT, itself or by its name
            label = getattr(clause, "element", None)
            clause = select.selected_columns.get(label) if isinstance(label, str) else label
        return clause if isinstance(clause, ColumnElement) else None


def _order_of(select: "SelectBase") -> "tuple[object, ...]":
    return tuple(getattr(select, "_order_by_clauses", ()))  # SQLAlchemy has no public question for it
