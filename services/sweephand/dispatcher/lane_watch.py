"""Know which lanes of this process are stuck, so that /readyz can say so.

Not /livez: what holds a lane up (a lock, a table that has grown too large, a right that was taken away) is in the database,
and a restart would only move the lead. A process that stands still as a whole is the elector's to tell.
"""

import time
from dataclasses import dataclass

_MOST_FAILURES = 3


@dataclass(slots=True)
class _Lane:
    name: str
    patience_seconds: float
    seen_at: float
    failures: int = 0
    error: str = ""


class LaneWatch:
    """The lanes that run in this process now, and how they fare. Any thread may ask.

    A lane is stuck when three rounds in a row have failed or overrun their deadline, or when no round has ended, well or not,
    for its patience.
    """

    def __init__(self) -> None:
        """Watch no lane yet."""
        self._lanes: dict[str, _Lane] = {}

    def begin(self, name: str, *, patience_seconds: float) -> None:
        """Watch a lane from now on."""
        self._lanes[name] = _Lane(name, patience_seconds, time.monotonic())

    def came_around(self, name: str) -> None:
        """Note that a round went well."""
        lane = self._lanes[name]
        lane.seen_at, lane.failures = time.monotonic(), 0

    def failed(self, name: str, *, error: str | None) -> None:
        """Note that a round failed or overran its deadline; no error: the database was away, which is not the lane's to tell."""
        lane = self._lanes[name]
        lane.seen_at = time.monotonic()
        if error is not None:
            lane.failures, lane.error = lane.failures + 1, error

    def end(self, name: str) -> None:
        """Forget a lane: the lead is lost, or the process ends."""
        self._lanes.pop(name, None)

    def problem(self) -> str | None:
        """Return which lane is stuck and why; None if none is."""
        for lane in tuple(self._lanes.values()):
            seconds = time.monotonic() - lane.seen_at
            if seconds > lane.patience_seconds:
                return f"the {lane.name} lane has not come around for {seconds:.0f} s"
            if lane.failures >= _MOST_FAILURES:
                return f"the {lane.name} lane has failed {lane.failures} times in a row: {lane.error}"
        return None
