"""What happens in the demo, from the first process to the summary."""

import signal
from collections import defaultdict, deque
from contextlib import suppress
from queue import Empty, Queue
from time import monotonic

from sweephand.demo.lines import LogLine, read_line
from sweephand.demo.screen import Screen
from sweephand.demo.shop import Shop
from sweephand.demo.tally import Tally, Tick
from sweephand.dev import LocalStack, StackAddresses
from sweephand.model.errors import SweephandError

CREATED = 5
STUCK = 12
SWEEP = "stuck_publications"
INTERVAL_SECONDS = 3
LIMIT = 5
DEADLINE_SECONDS = 40

_EXIT_INTERRUPTED = 130
_LOOK_SECONDS = 0.3
_GRACE_SECONDS = 5
_LAST_LINES = 5
_STARTED = frozenset({"schema_migrated", "api_started", "worker_started", "leader_elected"})
_TOLD = frozenset({"dispatched", "completed"})
_BAD = frozenset({"warning", "error", "critical"})
_ENVIRONMENT = {
    "STUCK_PUBLICATIONS_SCAN_INTERVAL": str(INTERVAL_SECONDS),
    "STUCK_PUBLICATIONS_BATCH_LIMIT": str(LIMIT),
    "WAREHOUSE_URL": "",  # none: the simulated one, slow enough for the next tick to meet jobs that still run
    "WAREHOUSE_MIN_DELAY": "5",
    "WAREHOUSE_MAX_DELAY": "10",
    "WAREHOUSE_FAILURE_RATE": "0",
    "SWEEPHAND_WORKER_THREADS": str(CREATED + STUCK),
    "SWEEPHAND_LOG_FORMAT": "console",
    "SWEEPHAND_LOG_LEVEL": "info",
}


def run(app_target: str, *, keep: bool, deadline_seconds: float = DEADLINE_SECONDS) -> int:
    """Tell the story on standard output and return the exit code: 0 if every product got published in time.

    `deadline_seconds` is what the sweep and the worker have to mend everything, from when the rows are stuck. With
    `keep` the processes stay up afterwards, with their logs, until SIGINT or SIGTERM. Called in the main thread.

    Raises:
        SweephandError: a process did not start or ended, or the application did not answer.
    """
    story = _Story(app_target, Screen())
    handlers = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return story.tell(keep=keep, deadline_seconds=deadline_seconds)
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    finally:
        story.end()
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _Story:
    """The demo while it runs. The processes' lines come in through a queue; one thread reads them and tells."""

    def __init__(self, app_target: str, screen: Screen) -> None:
        self._app_target = app_target
        self._screen = screen
        self._lines: Queue[LogLine] = Queue()
        self._last_lines: defaultdict[str, deque[LogLine]] = defaultdict(lambda: deque(maxlen=_LAST_LINES))
        self._tally = Tally()
        self._stack = LocalStack(app_target, on_line=self._receive, environment=_ENVIRONMENT)

    def tell(self, *, keep: bool, deadline_seconds: float) -> int:
        """Tell everything in order; return the exit code."""
        began = monotonic()
        self._screen.title(
            "sweephand demo: rows got stuck. A sweep finds them, each gets one job, a worker mends it. Half a minute."
        )
        addresses = self._start()
        with Shop(self._app_target, api_url=addresses.api_url, database_url=addresses.database_url) as shop:
            self._create(shop)
            self._break(shop)
            self._mend(shop, deadline=monotonic() + deadline_seconds)
        self._sum_up(seconds=monotonic() - began)
        self._point_on(addresses, keep=keep)
        if keep:
            self._stay_up()
        return 1 if self._tally.unpublished() else 0

    def end(self) -> None:
        """Stop the processes."""
        with self._screen.waiting("stopping the processes"):
            self._stack.stop(grace_seconds=_GRACE_SECONDS)

    def _start(self) -> StackAddresses:
        self._screen.chapter(
            "1. Start",
            why="PostgreSQL, and the application's three processes: api, worker, dispatcher. Nothing else.",
        )
        with self._screen.waiting("starting"):
            try:
                addresses = self._stack.start()
            except SweephandError:
                for line in self._waiting_lines():
                    self._screen.log(line)
                raise
        for line in self._waiting_lines():
            if line.event in _STARTED or line.level in _BAD:
                self._screen.log(line)
        return addresses

    def _create(self, shop: Shop) -> None:
        self._screen.chapter(
            f"2. Create {CREATED} products over HTTP",
            why="Each request stores the product and its publish_product job in one transaction: both or neither."
            " The answer does not wait for the warehouse, which takes 5 to 10 s. A worker does.",
        )
        for number in range(1, CREATED + 1):
            created = shop.create_product(f"Lamp {number}", price_cents=1000 * number)
            self._tally.created.append(created.product_id)
            self._screen.say(
                f"POST /api/v1/products: {created.status} in {created.milliseconds:.0f} ms,"
                f" product {created.product_id}, published_at null",
            )

    def _break(self, shop: Shop) -> None:
        self._screen.chapter(
            f"3. Get {STUCK} products stuck",
            why="Rows whose job is lost, as after a bug or a restored backup: unpublished for more than 10 minutes."
            " Without a sweep they would stay so.",
        )
        stuck = shop.make_stuck(STUCK)
        self._tally.stuck.extend(stuck.product_ids)
        self._screen.say(f"$ {stuck.command}", style="bold")
        self._screen.say(stuck.said)

    def _mend(self, shop: Shop, *, deadline: float) -> None:
        self._screen.chapter(
            "4. Watch them being mended",
            why=f"Every {INTERVAL_SECONDS} s the sweep {SWEEP} ticks: in one transaction the dispatcher"
            f" selects such rows, enqueues a job for each, at most {LIMIT} here, and records the tick."
            " The worker runs the jobs.",
        )
        with self._screen.bars() as bars:
            created = bars.add("created over HTTP", total=CREATED)
            stuck = bars.add("stuck", total=STUCK)
            while self._tally.unpublished() and monotonic() < deadline:
                self._follow()
                self._look(shop)
                created.move(self._tally.published_created())
                stuck.move(self._tally.published_stuck())

    def _look(self, shop: Shop) -> None:
        for product_id in self._tally.unpublished():
            published_at = shop.published_at(product_id)
            if published_at is not None:
                self._tally.published[product_id] = published_at

    def _sum_up(self, *, seconds: float) -> None:
        tally = self._tally
        self._screen.chapter(f"Summary after {seconds:.0f} s")
        self._screen.table(
            ("products", "number", "published"),
            [
                ("created over HTTP", CREATED, tally.published_created()),
                ("stuck", STUCK, tally.published_stuck()),
            ],
        )
        self._screen.table(
            (SWEEP, "enqueued", "skipped_duplicates"),
            [
                *((f"tick {tick.tick_id}", tick.enqueued, tick.skipped_duplicates) for tick in tally.ticks),
                ("sum", tally.enqueued(), tally.skipped_duplicates()),
            ],
        )
        left = tally.unpublished()
        if left:
            numbers = ", ".join(map(str, left))
            self._screen.say(f"{len(left)} products are still not published: {numbers}", style="bold red")
        else:
            self._screen.say("Every product is published.", style="bold green")
            self._screen.say(
                f"The sweep found stuck rows {tally.enqueued() + tally.skipped_duplicates()} times and enqueued"
                f" {tally.enqueued()} jobs: one for each, however often it was found."
            )

    def _point_on(self, addresses: StackAddresses, *, keep: bool) -> None:
        self._screen.chapter("Where to look next")
        places = [
            ("the sweep's SELECT", "services/storefront/adapters/postgres/stuck_publications.py"),
            ("job and sweep", "services/storefront/adapters/jobs.py"),
            ("one transaction", "services/storefront/use_cases/create_product.py"),
            ("an app of ten lines", "README.md"),
        ]
        if not keep:
            places.append(("the same, to play with", "make demo KEEP=1"))
        self._screen.pairs(places)
        if keep:
            self._screen.chapter("Up until Ctrl-C")
            self._screen.pairs(_open_places(addresses))

    def _stay_up(self) -> None:
        while True:
            self._follow()

    def _follow(self) -> None:
        """Wait a moment for lines, and show those that belong to the story.

        Raises:
            SweephandError: a process has ended.
        """
        ended = self._stack.ended()
        with suppress(Empty):
            self._show(self._lines.get(timeout=_LOOK_SECONDS))
        for line in self._waiting_lines():
            self._show(line)
        for role, code in ended.items():
            for line in self._last_lines[role]:
                self._screen.log(line)
            raise SweephandError(f"the {role} ended with exit code {code}; its last lines are above")

    def _show(self, line: LogLine) -> None:
        self._last_lines[line.role].append(line)
        if line.event in _TOLD or line.level in _BAD or not line.level:
            self._screen.log(line)
        if line.event == "dispatched" and line.facts.get("sweep") == SWEEP:
            self._screen.say(_meaning(self._tally.add_tick(line)))

    def _receive(self, role: str, line: str) -> None:
        self._lines.put(read_line(role, line))

    def _waiting_lines(self) -> list[LogLine]:
        return [self._lines.get_nowait() for _ in range(self._lines.qsize())]


def _meaning(tick: Tick) -> str:
    skipped = _rows(tick.skipped_duplicates)
    match tick:
        case Tick(enqueued=0):
            return f"= {skipped} found, still with an unfinished job: skipped"
        case Tick(skipped_duplicates=0):
            return f"= {_rows(tick.enqueued)} found without a job: one enqueued for each"
        case _:
            return f"= {tick.enqueued} more got a job; {skipped} still had an unfinished one: skipped, not enqueued twice"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"


def _open_places(addresses: StackAddresses) -> list[tuple[str, str]]:
    places = [("the API, to try out", f"{addresses.api_url}/docs")]
    places += [(f"metrics of the {role}", f"{url}/metrics") for role, url in addresses.endpoint_urls.items()]
    if addresses.is_embedded:
        # Another database's URL may hold a password.
        places.append(("more stuck products", f"DATABASE_URL='{addresses.database_url}' make stuck"))
        places.append(("the tables", f"psql '{addresses.database_url}'"))
    return places
