"""Keep what one case did and saw: for its assertions, for the report, and as evidence when it fails."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from e2e.system.ledger import SWEEP, Tick, missed
from e2e.system.shop import Shop
from tests.support.waiting import until

# What tells of lost or doubled work: no case may raise these, however hard its fault.
_LOSES_WORK = {
    "SweephandDoubleDispatch",
    "SweephandTickFailing",
    "SweephandDiscardedGrowing",
}


@dataclass(slots=True)
class Case:
    """Be one case: it begins when it is made, and sees only what happened since."""

    name: str
    title: str
    shop: Shop
    began_at: datetime
    figures: dict[str, float] = field(default_factory=dict)
    ended_at: datetime | None = None

    @classmethod
    def begin(cls, shop: Shop, *, name: str, title: str) -> "Case":
        """Begin a case on a shop that is up."""
        return cls(name=name, title=title, shop=shop, began_at=shop.ledger.now())

    def ticks(self) -> list[Tick]:
        """Return the ticks planned since the case began; fails unless the ledger is exact."""
        return self.shop.ledger.check_exact(since=self.began_at)

    def missed(self) -> int:
        """Return how many ticks nobody led to run, in an exact ledger."""
        return missed(self.ticks())

    def check_done_once(self, product_ids: Sequence[int]) -> None:
        """Check that each product's publication was carried out, and only once."""
        executions = self.shop.ledger.executions(product_ids)
        self.figures["duplicates"] = self.figures.get("duplicates", 0) + sum(times - 1 for times in executions.values())
        assert executions == dict.fromkeys(product_ids, 1)

    def check_counters(self) -> None:
        """Check that the sweep's counters of enqueued and missed rose by what the ledger has. Only when nothing is stuck now."""
        ticks = self.ticks()
        enqueued = sum(tick.enqueued for tick in ticks if tick.is_dispatch)
        increase = self.shop.scrapes.wait_for_increase
        increase("sweephand_dispatcher_enqueued_total", enqueued, since=self.began_at, sweep=SWEEP)
        increase("sweephand_dispatcher_missed_ticks_total", missed(ticks), since=self.began_at, sweep=SWEEP, reason="no_leader")

    def check_alerts(self, *expected: str) -> set[str]:
        """Return the alerts raised since the case began: all that are expected, and none that tells of lost or doubled work."""
        for name in expected:
            self.shop.scrapes.wait_for_alert(name, since=self.began_at)
        raised = self.shop.scrapes.alerts_raised(since=self.began_at)
        assert raised & _LOSES_WORK - set(expected) == set()
        return raised

    def let_pass(self, seconds: float) -> None:
        """Wait while a fault lasts: until this machine's clock, which the database shares, has gone on so far."""
        ends_at = datetime.now(UTC) + timedelta(seconds=seconds)
        until(
            lambda: datetime.now(UTC) >= ends_at,
            deadline_seconds=seconds + 10,
            every_seconds=min(1, seconds / 20),
            message=f"{seconds:g} s pass",
        )

    def end(self, directory: Path, *, outcome: str) -> None:
        """Write the case down for the report."""
        self.ended_at = self.shop.ledger.now()
        margin = timedelta(seconds=2 * self.shop.timings.interval)
        leaders = self.shop.scrapes.series("leader_election_master_status", since=self.began_at)
        document: Mapping[str, object] = {
            "name": self.name,
            "title": self.title,
            "outcome": outcome,
            "began_at": self.began_at.timestamp(),
            "ended_at": self.ended_at.timestamp(),
            "interval_seconds": self.shop.timings.interval,
            "figures": self.figures,
            "events": [
                {"at": event.at.timestamp(), "text": event.text}
                for event in self.shop.diary.events
                if self.began_at <= event.at <= self.ended_at
            ],
            "ticks": [_tick(tick) for tick in self.shop.ledger.ticks(since=self.began_at - margin)],
            "leaders": [{"labels": dict(one.labels), "samples": one.samples} for one in leaders],
        }
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{self.name}.json").write_text(json.dumps(document, indent=1), encoding="utf-8")


def _tick(tick: Tick) -> dict[str, object]:
    return {
        "planned_at": tick.planned_at.timestamp(),
        "started_at": tick.started_at.timestamp() if tick.started_at else None,
        "ended_at": tick.ended_at.timestamp() if tick.ended_at else None,
        "reason": tick.reason,
        "outcome": tick.outcome,
        "cause": tick.cause,
        "covers": tick.covers,
        "enqueued": tick.enqueued,
        "skipped_duplicates": tick.skipped_duplicates,
        "term": tick.term,
        "dispatcher": tick.dispatcher,
    }
