"""Ask PostgreSQL how it would run a statement, and say in words which tables it would read in which way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

SMALL_TABLE_ROWS = 1_000
"""Up to so many rows no index is missed: reading the whole table costs about as much as using one."""

# Negative: the table was never analysed, and the planner's own guess is better.
_TABLE_ROWS = "SELECT reltuples::float8 FROM pg_catalog.pg_class WHERE oid = to_regclass(%s)"


@dataclass(frozen=True, slots=True)
class TableRead:
    """Be one reading of a table; `index` None means from its first row to its last. Both numbers are estimates."""

    schema: str
    table: str
    index: str | None
    table_rows: int

    @property
    def is_costly(self) -> bool:
        """Tell whether the whole of a table that is not small is read."""
        return self.index is None and self.table_rows > SMALL_TABLE_ROWS


@dataclass(frozen=True, slots=True)
class Plan:
    """Be the plan of a statement; `cost` is in the planner's unit, about the reading of one page of a table in a row."""

    cost: float
    reads: tuple[TableRead, ...]

    @property
    def is_served_by_indexes(self) -> bool:
        """Tell whether no table that is not small is read as a whole."""
        return not any(read.is_costly for read in self.reads)


def explain(connection: psycopg.Connection, statement: str, values: Mapping[str, object]) -> Plan:
    """Return the plan of a statement, which is not run."""
    row = connection.execute(f"EXPLAIN (FORMAT JSON, VERBOSE) {statement}".encode(), values).fetchone()
    answer: object = row[0] if row is not None else None
    root = _mapping(_mapping(answer[0] if isinstance(answer, list) and answer else None).get("Plan"))
    reads: dict[TableRead, None] = {}
    for node in _nodes(root):
        if "Relation Name" in node:
            reads[_read(connection, node)] = None
    return Plan(cost=float(str(root.get("Total Cost", 0))), reads=tuple(reads))


def _read(connection: psycopg.Connection, node: Mapping[str, object]) -> TableRead:
    schema, table = str(node.get("Schema", "public")), str(node["Relation Name"])
    name = sql.Identifier(schema, table).as_string(connection)
    row = connection.execute(_TABLE_ROWS, (name,)).fetchone()
    counted = -1.0 if row is None else float(row[0])
    rows = counted if counted >= 0 else float(str(node.get("Plan Rows", 0)))
    indexes = [str(below["Index Name"]) for below in _nodes(node) if "Index Name" in below]
    return TableRead(schema=schema, table=table, index=indexes[0] if indexes else None, table_rows=int(rows))


def _nodes(node: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield node
    below = node.get("Plans", ())
    for child in below if isinstance(below, Sequence) else ():
        yield from _nodes(_mapping(child))


def _mapping(value: object) -> Mapping[str, object]:
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}
