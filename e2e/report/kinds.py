"""Say what became of a tick, in the words, colours and marks of the pictures."""

from dataclasses import dataclass
from enum import Enum

from e2e.report.records import PlannedTick


@dataclass(frozen=True, slots=True)
class Look:
    """Be how a kind of tick is drawn and named."""

    words: str
    """For the legend."""
    short: tuple[str, ...]
    """For the tick itself, the most telling first: the first that has room is written."""
    fill: str
    ink: str
    is_hatched: bool = False


class Kind(Enum):
    """Be what became of a tick."""

    RAN = Look("ran, stuck rows found", ("ran",), "#0e7c86", "#ffffff")
    RAN_EMPTY = Look("ran, nothing stuck", ("ran",), "#a5d8dd", "#0b4f56")
    RUN_ON_START = Look("run on start: once, when a lead begins", ("run on start", "on start", "S"), "#f2b134", "#3d2a00")
    CATCH_UP = Look("caught up with", ("caught up", "C"), "#b9770e", "#ffffff")
    MISSED = Look("missed", ("missed", "×"), "#c62f3d", "#ffffff")
    COLLAPSED = Look("missed, a later one made up for it", ("missed", "×"), "#f7c6ca", "#8f1420", is_hatched=True)
    FAILED = Look("failed", ("failed", "!"), "#6d0f1b", "#ffffff")
    PAUSED = Look("the sweep was paused", ("paused", "‖"), "#c9d1d9", "#1f2328")
    OVERLAPPED = Look("left out, the one before still ran", ("left out", "–"), "#e4e8ec", "#1f2328", is_hatched=True)
    FENCED = Look("refused, a newer leader was there", ("refused", "F"), "#8250df", "#ffffff")
    MANUAL = Look("run by hand", ("by hand", "H"), "#57606a", "#ffffff")

    @property
    def mark(self) -> str:
        """What stands on it where there is little room."""
        return self.value.short[-1] if len(self.value.short[-1]) == 1 else ""

    @property
    def look(self) -> Look:
        """How it is drawn and named."""
        return self.value


_BY_OUTCOME = {
    "missed": Kind.MISSED,
    "collapsed": Kind.COLLAPSED,
    "error": Kind.FAILED,
    "paused": Kind.PAUSED,
    "skipped_overlap": Kind.OVERLAPPED,
    "fenced": Kind.FENCED,
}
_BY_REASON = {"run_on_start": Kind.RUN_ON_START, "catch_up": Kind.CATCH_UP, "manual": Kind.MANUAL}
_CAUSES = {
    "no_leader": "nobody led",
    "db_down": "the database was away",
    "late": "the dispatcher was late",
    "paused": "the sweep was paused",
}


def kind_of(tick: PlannedTick) -> Kind:
    """Return what became of a tick."""
    if not tick.has_run:
        return _BY_OUTCOME.get(tick.outcome, Kind.FAILED)
    return _BY_REASON.get(tick.reason, Kind.RAN if tick.outcome == "ok" else Kind.RAN_EMPTY)


def cause_in_words(cause: str) -> str:
    """Return why a tick did not run at its time."""
    return _CAUSES.get(cause, cause.replace("_", " "))


def description(tick: PlannedTick) -> str:
    """Return one tick in words."""
    several = f", {tick.covers} planned times" if tick.covers > 1 else ""
    why = f", since {cause_in_words(tick.cause)}" if tick.cause else ""
    when = f", started at {tick.started:.1f} s in term {tick.term}" if tick.started is not None else ""
    found = f"; enqueued {tick.enqueued}, skipped {tick.skipped_duplicates}" if tick.has_run else ""
    return f"{tick.planned:.1f} s: {kind_of(tick).look.words}{several}{why}{when}{found}"
