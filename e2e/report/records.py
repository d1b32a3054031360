"""Read what a run wrote down of its cases. Moments are seconds from the case's beginning."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from e2e.system.kubernetes import as_list, as_mapping, at

_SPELLED = {"api": "API", "postgres": "PostgreSQL", "rbac": "RBAC", "sigterm": "SIGTERM", "sigkill": "SIGKILL"}


@dataclass(frozen=True, slots=True)
class Happening:
    """Be something that was done to the shop."""

    moment: float
    text: str


@dataclass(frozen=True, slots=True)
class PlannedTick:
    """Be a row of the ledger: one planned tick, or `covers` of them in a row."""

    planned: float
    started: float | None
    reason: str
    outcome: str
    cause: str | None
    covers: int
    enqueued: int
    skipped_duplicates: int
    term: int
    dispatcher: str

    @property
    def has_run(self) -> bool:
        """Whether its scan was run and committed."""
        return self.outcome in {"ok", "empty"}

    @property
    def is_on_grid(self) -> bool:
        """Whether it stands for planned times, of which each has one row; others lie beside the grid."""
        return self.reason != "manual" and self.outcome != "fenced"


@dataclass(frozen=True, slots=True)
class LeaderSeries:
    """Be what one process said of itself at each scrape: whether it leads."""

    process: str
    """A name, or an address where the scrapes have no name."""
    samples: tuple[tuple[float, bool], ...]


@dataclass(frozen=True, slots=True)
class CaseRecord:
    """Be what one case did and saw."""

    name: str
    title: str
    outcome: str
    began_at: datetime
    seconds: float
    interval_seconds: float
    figures: Mapping[str, float]
    happenings: tuple[Happening, ...]
    ticks: tuple[PlannedTick, ...]
    leaders: tuple[LeaderSeries, ...]

    @property
    def heading(self) -> str:
        """Its name in words."""
        words = [_SPELLED.get(word, word) for word in self.name.split("_")]
        return " ".join([words[0][:1].upper() + words[0][1:], *words[1:]])

    @property
    def own_ticks(self) -> tuple[PlannedTick, ...]:
        """The ticks planned while it ran; the ledger's rows of a while before it are there to see who led."""
        return tuple(tick for tick in self.ticks if tick.planned >= 0)


def read_cases(directory: Path) -> list[CaseRecord]:
    """Return the cases written into a directory, by name: groups of them run beside each other, in no order that lasts."""
    cases = [_case(_document(path)) for path in directory.glob("*.json")]
    return sorted(cases, key=lambda case: case.name)


def _document(path: Path) -> dict[str, object]:
    found: object = json.loads(path.read_text(encoding="utf-8"))
    return as_mapping(found)


def _case(document: Mapping[str, object]) -> CaseRecord:
    began = _number(document["began_at"])
    return CaseRecord(
        name=str(document["name"]),
        title=str(document["title"]),
        outcome=str(document["outcome"]),
        began_at=datetime.fromtimestamp(began, UTC),
        seconds=_number(document["ended_at"]) - began,
        interval_seconds=_number(document["interval_seconds"]),
        figures={name: _number(value) for name, value in as_mapping(document["figures"]).items()},
        happenings=tuple(
            Happening(_number(at(event, "at")) - began, str(at(event, "text"))) for event in as_list(document["events"])
        ),
        ticks=tuple(_tick(as_mapping(tick), began=began) for tick in as_list(document["ticks"])),
        leaders=tuple(_series(one, began=began) for one in as_list(document["leaders"])),
    )


def _tick(row: Mapping[str, object], *, began: float) -> PlannedTick:
    started = row["started_at"]
    return PlannedTick(
        planned=_number(row["planned_at"]) - began,
        started=None if started is None else _number(started) - began,
        reason=str(row["reason"]),
        outcome=str(row["outcome"]),
        cause=None if row["cause"] is None else str(row["cause"]),
        covers=int(_number(row["covers"])),
        enqueued=int(_number(row["enqueued"])),
        skipped_duplicates=int(_number(row["skipped_duplicates"])),
        term=int(_number(row["term"])),
        dispatcher=str(row["dispatcher"]),
    )


def _series(one: object, *, began: float) -> LeaderSeries:
    name = at(one, "labels", "pod") or at(one, "labels", "instance")
    return LeaderSeries(
        process=str(name),
        samples=tuple((_number(at(sample, 0)) - began, _number(at(sample, 1)) == 1) for sample in as_list(at(one, "samples"))),
    )


def _number(value: object) -> float:
    assert isinstance(value, int | float), value
    return float(value)
