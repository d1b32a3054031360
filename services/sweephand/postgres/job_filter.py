"""Choose jobs by what operators know of them, in conditions that the table's indexes serve."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from psycopg import sql

from sweephand.model.lifecycle import FINISHED, WAITING
from sweephand.model.states import JobState


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Choose jobs; what is None or empty does not count.

    `older_than` is the time since the job was enqueued. `args` compares top-level arguments with their text: a string as it
    is, anything else as JSON.
    """

    states: tuple[JobState, ...] = ()
    kind: str | None = None
    queue: str | None = None
    older_than: timedelta | None = None
    tick_id: int | None = None
    args: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Tell whether the filter lets every job through."""
        return self == JobFilter()

    def in_states(self, states: tuple[JobState, ...]) -> "JobFilter":
        """Return the filter with other states."""
        return replace(self, states=states)

    def __str__(self) -> str:
        """Return the filter as the audit keeps it: `state=discarded kind=publish_product`."""
        parts = {
            "state": ",".join(self.states),
            "kind": self.kind,
            "queue": self.queue,
            "older_than": None if self.older_than is None else f"{self.older_than.total_seconds():g}s",
            "tick": self.tick_id,
            **{f"args.{name}": value for name, value in self.args.items()},
        }
        return " ".join(f"{name}={value}" for name, value in parts.items() if value) or "all"

    def values(self) -> dict[str, object]:
        """Return the values that `condition` names."""
        return {
            "kind": self.kind,
            "queue": self.queue,
            "older_than": self.older_than,
            "tick_id": self.tick_id,
            "arg_names": list(self.args),
            "arg_values": list(self.args.values()),
        }

    def age_condition(self) -> sql.Composable:
        """Return the condition on the age alone."""
        return sql.SQL("true" if self.older_than is None else "created_at < now() - %(older_than)s::interval")

    def condition(self) -> sql.Composable:
        """Return the condition on sweephand.job, true for an empty filter."""
        parts: list[sql.Composable] = []
        if self.states:
            parts.append(state_condition(self.states))
        if self.kind is not None:
            parts.append(sql.SQL("kind = %(kind)s"))
        if self.queue is not None:
            parts.append(sql.SQL("queue = %(queue)s"))
        if self.older_than is not None:
            parts.append(self.age_condition())
        if self.tick_id is not None:
            parts.append(sql.SQL("tick_id = %(tick_id)s"))
        if self.args:
            parts.append(
                sql.SQL(
                    "NOT EXISTS (SELECT FROM unnest(%(arg_names)s::text[], %(arg_values)s::text[]) AS given (name, value) "
                    "WHERE coalesce(args ->> given.name, (args -> given.name)::text) IS DISTINCT FROM given.value)"
                )
            )
        return sql.SQL(" AND ").join(parts) if parts else sql.SQL("true")


def state_condition(states: tuple[JobState, ...]) -> sql.Composable:
    """Return a condition on the state: one term for each partial index, with the states as literals that fit its predicate."""
    groups = (WAITING, (JobState.RUNNING,), (JobState.DISCARDED,), tuple(s for s in FINISHED if s is not JobState.DISCARDED))
    terms = [
        sql.SQL("state IN ({})").format(sql.SQL(", ").join(sql.Literal(state.value) for state in group if state in states))
        for group in groups
        if set(group) & set(states)
    ]
    return sql.SQL("({})").format(sql.SQL(" OR ").join(terms))
