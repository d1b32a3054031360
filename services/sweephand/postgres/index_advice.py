"""Write the index that a sweep's SELECT asks for, as far as its form tells."""

from collections.abc import Iterable

from sqlalchemy import ClauseElement, Column, ColumnElement, Dialect, Select, SelectBase, Table
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import CompileError
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BooleanClauseList, UnaryExpression
from sqlalchemy.sql.functions import FunctionElement

_MAX_COLUMNS = 4


def index_advice(select: SelectBase, *, schema: str, table: str) -> str:
    """Return what to do against a sequential scan of the table: a CREATE INDEX, or words if the SELECT is too involved.

    Conditions that never change, such as `published_at IS NULL`, become the index's own, which keeps it small; its columns
    are what the rows are ordered by, so that the oldest come first without a sort.
    """
    found = _find_table(select, schema=schema, table=table)
    if found is None or not isinstance(select, Select):
        return f"add an index on the columns of {table} that the SELECT's WHERE and ORDER BY name"
    conditions = [clause for clause in _conjunction(select.whereclause) if _is_about(clause, found)]
    constant = [clause for clause in conditions if _is_constant(clause)]
    varying = [column for clause in conditions if not _is_constant(clause) for column in _columns(clause)]
    columns = list(dict.fromkeys([*_order(select, found), *varying]))[:_MAX_COLUMNS]
    if not columns:
        columns = list(dict.fromkeys(column for clause in constant for column in _columns(clause)))[:_MAX_COLUMNS]
        constant = []
    names = ", ".join(_sql(column) for column in columns)
    if not names:
        return f"it has no condition on {table} that an index could serve; narrow the SELECT"
    where = " AND ".join(_sql(clause) for clause in constant)
    qualified = f"{schema}.{table}" if schema != "public" else table
    return f"add an index like: CREATE INDEX CONCURRENTLY ON {qualified} ({names}){f' WHERE {where}' if where else ''}"


def _find_table(select: SelectBase, *, schema: str, table: str) -> Table | None:
    for element in visitors.iterate(select):
        if isinstance(element, Table) and element.name == table and element.schema in {None, schema}:
            return element
    return None


def _conjunction(clause: ColumnElement[bool] | None) -> list[ColumnElement[bool]]:
    if isinstance(clause, BooleanClauseList) and clause.operator is operators.and_:
        return [part for inner in clause.clauses for part in _conjunction(inner)]
    return [] if clause is None else [clause]


def _columns(clause: ClauseElement) -> list[Column[object]]:
    return [element for element in visitors.iterate(clause) if isinstance(element, Column)]


def _is_about(clause: ColumnElement[bool], table: Table) -> bool:
    """Tell whether a condition is about this table alone and can be written down."""
    columns = _columns(clause)
    has_query = any(isinstance(element, SelectBase) for element in visitors.iterate(clause))
    return bool(columns) and not has_query and all(column.table is table for column in columns)


def _is_constant(clause: ColumnElement[bool]) -> bool:
    """Tell whether a condition could stand in an index: it calls nothing, and its values have a literal form."""
    if any(isinstance(element, FunctionElement) for element in visitors.iterate(clause)):
        return False
    try:
        _sql(clause)
    except CompileError:
        return False
    return True


def _order(select: Select[*tuple[object, ...]], table: Table) -> Iterable[Column[object]]:
    for clause in select._order_by_clauses:  # noqa: SLF001 - SQLAlchemy has no public question for it
        element = clause.element if isinstance(clause, UnaryExpression) else clause
        plain = getattr(element, "element", element)  # a label's
        if not isinstance(plain, Column) or plain.table is not table:
            return
        yield plain


def _sql(clause: ClauseElement) -> str:
    dialect: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    compiled = clause.compile(dialect=dialect, compile_kwargs={"literal_binds": True, "include_table": False})
    return str(compiled).replace("%%", "%")
