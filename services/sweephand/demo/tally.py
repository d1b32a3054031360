"""What the demo has seen so far."""

from dataclasses import dataclass, field
from datetime import datetime

from sweephand.demo.lines import LogLine


@dataclass(frozen=True, slots=True)
class Tick:
    """The two counts of one dispatch."""

    tick_id: str
    enqueued: int
    skipped_duplicates: int


@dataclass(slots=True)
class Tally:
    """Products by how they began, when they were published, and the ticks that found some. One thread at a time."""

    created: list[int] = field(default_factory=list)
    stuck: list[int] = field(default_factory=list)
    published: dict[int, datetime] = field(default_factory=dict)
    ticks: list[Tick] = field(default_factory=list)

    def unpublished(self) -> list[int]:
        """Return the products that are not published yet."""
        return [product_id for product_id in (*self.created, *self.stuck) if product_id not in self.published]

    def published_created(self) -> int:
        """Count the published among those that were created over HTTP."""
        return sum(product_id in self.published for product_id in self.created)

    def published_stuck(self) -> int:
        """Count the published among those that were stuck."""
        return sum(product_id in self.published for product_id in self.stuck)

    def enqueued(self) -> int:
        """Sum up what the ticks enqueued."""
        return sum(tick.enqueued for tick in self.ticks)

    def skipped_duplicates(self) -> int:
        """Sum up what the ticks skipped."""
        return sum(tick.skipped_duplicates for tick in self.ticks)

    def add_tick(self, line: LogLine) -> Tick:
        """Take a dispatch from its log line, and return it."""
        tick = Tick(
            tick_id=line.facts.get("tick", "?"),
            enqueued=line.number("enqueued"),
            skipped_duplicates=line.number("skipped_duplicates"),
        )
        self.ticks.append(tick)
        return tick
