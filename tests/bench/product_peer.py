"""sweephand as one more peer of the shared benchmark harness; it runs inside the harness, whose modules it imports."""

import mmap
import os
import struct
import sys
import threading
from collections.abc import Sequence

import psycopg
from agents.common import Agent, Mark  # type: ignore[import-not-found]  # the harness has it, where this runs

from sweephand import App, enqueue, enqueue_many

_PROCESSES = int(os.environ.get("BENCH_PROCESSES", "1"))
_COUNT = struct.Struct("q")


class SharedMark(Mark):  # type: ignore[misc]  # the harness's class has no types
    """Count the jobs that several forked processes start, so that whichever starts the last one says so."""

    def __init__(self) -> None:
        """Make the counts, one for each process, in memory that forks share."""
        super().__init__()
        self.place = 0
        self._counts = mmap.mmap(-1, _COUNT.size * _PROCESSES)
        self._lock = threading.Lock()

    def hit(self, n: int) -> None:
        """Note that a job was started."""
        if self.every:
            self.write(n)
            return
        with self._lock:
            mine = next(self.counter) + 1
            _COUNT.pack_into(self._counts, _COUNT.size * self.place, mine)
            seen = sum(count for (count,) in _COUNT.iter_unpack(self._counts[:]))
        if mine == 1:
            self.write("first")
        if seen > self.last:
            self.write("last")


app = App("bench")
mark = Mark() if _PROCESSES == 1 else SharedMark()


@app.job(unique=None)
def job(n: int) -> None:
    """Note that the job was started."""
    mark.hit(n)


@app.job()
def keyed(key: str) -> None:
    """Do nothing; only its uniqueness is measured."""
    del key


class Peer(Agent):  # type: ignore[misc]  # as above
    """The product through its public interfaces."""

    bulk_how = "enqueue_many: one statement, an outcome for each item"

    def setup(self) -> None:
        """Install the schema, by what a worker does not import."""
        from sweephand.postgres.migrate import migrate

        migrate(self.dsn)

    def open(self) -> None:
        """Open the producer's connection."""
        self.connection = psycopg.connect(self.dsn, autocommit=True, prepare_threshold=1)

    def close(self) -> None:
        """Close it."""
        self.connection.close()

    def put(self, n: int) -> None:
        """Enqueue one job in a transaction of its own."""
        with self.connection.transaction():
            enqueue(self.connection, job, n=n)

    def bulk(self, keys: Sequence[str]) -> tuple[int, int]:
        """Enqueue one unique job for each key."""
        with self.connection.transaction():
            outcomes = enqueue_many(self.connection, keyed, [{"key": key} for key in keys])
        skipped = sum(outcome.is_duplicate for outcome in outcomes)
        return len(keys) - skipped, skipped

    def seed(self, numbers: Sequence[int]) -> None:
        """Enqueue as fast as the public interface can."""
        listed = list(numbers)
        for start in range(0, len(listed), 10_000):
            with self.connection.transaction():
                enqueue_many(self.connection, job, [{"n": n} for n in listed[start : start + 10_000]])

    def history(self, count: int) -> str:
        """Return SQL that adds finished jobs as the product keeps them."""
        return f"""
            WITH made AS (
                INSERT INTO sweephand.job (kind, queue, state, args, attempt, max_attempts, timeout_seconds, finished_at)
                SELECT 'job', 'default', 'completed', '{{"n": 0}}', 1, 25, 600, now() FROM generate_series(1, {count})
                RETURNING id)
            INSERT INTO sweephand.job_attempt (job_id, attempt, started_at, ended_at, outcome, worker_name)
            SELECT id, 1, now(), now(), 'completed', 'bench' FROM made"""  # noqa: S608 (a number of our own)

    def work(self, ready: Mark) -> None:
        """Run the public worker command, in BENCH_PROCESSES processes; ready once its imports are done, as with the peers."""
        import sweephand.worker.process  # noqa: F401
        from sweephand.cli import main

        for place in range(1, _PROCESSES):
            if os.fork() == 0:
                mark.place = place
                break
        os.environ.update(DATABASE_URL=self.dsn, SWEEPHAND_METRICS_PORT="0")
        sys.argv = ["sweephand", "worker", "--app", "agents.product_peer:app"]
        if getattr(mark, "place", 0) == 0:
            ready.ready()
        main()
