import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from dramatiq.middleware import Shutdown, TimeLimitExceeded

from sweephand.worker.attempts import Attempt, Interruption
from sweephand.worker.interrupts import Interrupts, JobCancelled
from tests.support.waiting import until
from tests.worker.attempts import make_attempt


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def _run(interrupts: Interrupts, attempt: Attempt, *, running: Event, finish: Event) -> BaseException | None:
    """Be a worker thread: run until told to finish, and return what arrived."""
    attempt.started = time.monotonic()
    try:
        try:
            interrupts.enter(attempt)
            running.set()
            until(finish.is_set, message="the test lets the job finish")
        finally:
            interrupts.leave(attempt)
    except BaseException as error:  # noqa: BLE001
        return error
    finally:
        interrupts.forget(attempt)
    return None


@pytest.mark.parametrize(
    ("why", "raised"),
    [
        (Interruption.TIMED_OUT, TimeLimitExceeded),
        (Interruption.CANCELLED, JobCancelled),
        (Interruption.SHUTDOWN, Shutdown),
    ],
)
def test_a_running_attempt_is_interrupted_once(pool: ThreadPoolExecutor, why: Interruption, raised: type[BaseException]) -> None:
    interrupts, attempt, running = Interrupts(), make_attempt(), Event()
    outcome = pool.submit(_run, interrupts, attempt, running=running, finish=Event())
    running.wait(10)

    first = interrupts.interrupt(attempt, why=why, reason="because")
    second = interrupts.interrupt(attempt, why=Interruption.SHUTDOWN)

    assert type(outcome.result(10)) is raised
    assert (first, second) == (True, False)
    assert (attempt.interruption, attempt.reason) == (why, "because")
    assert interrupts.running() == []


def test_an_attempt_past_its_time_limit_is_interrupted_and_others_are_not(pool: ThreadPoolExecutor) -> None:
    interrupts, running, finish = Interrupts(), Event(), Event()
    short, long = make_attempt(timeout_seconds=0.1), make_attempt(timeout_seconds=60)
    ended_short = pool.submit(_run, interrupts, short, running=Event(), finish=Event())
    ended_long = pool.submit(_run, interrupts, long, running=running, finish=finish)
    running.wait(10)

    interrupts.start()

    assert isinstance(ended_short.result(10), TimeLimitExceeded)
    finish.set()
    assert ended_long.result(10) is None
    interrupts.stop()


def test_an_attempt_that_has_ended_is_not_interrupted(pool: ThreadPoolExecutor) -> None:
    interrupts, attempt, finish = Interrupts(), make_attempt(), Event()
    finish.set()
    pool.submit(_run, interrupts, attempt, running=Event(), finish=finish).result(10)

    assert interrupts.interrupt(attempt, why=Interruption.SHUTDOWN) is False


def test_an_interruption_never_hits_the_next_attempt_of_the_thread() -> None:
    interrupts, stop, job = Interrupts(), Event(), make_attempt().job
    misses: list[BaseException] = []

    def work() -> int:
        done = 0
        while not stop.is_set():
            attempt = make_attempt(job)
            try:
                error = _run_shortly(interrupts, attempt)
                if error is not None and attempt.interruption is None:
                    misses.append(error)
            except BaseException as error:  # noqa: BLE001
                misses.append(error)
            done += 1
        return done

    with ThreadPoolExecutor(2) as pool:
        workers = [pool.submit(work) for _ in range(2)]
        interrupted = 0
        until_time = time.monotonic() + 1
        while time.monotonic() < until_time:
            interrupted += len(interrupts.interrupt_all(Interruption.CANCELLED))
        stop.set()
        done = sum(worker.result(10) for worker in workers)

    assert misses == []
    assert interrupted > 0
    assert done > interrupted


def _run_shortly(interrupts: Interrupts, attempt: Attempt) -> BaseException | None:
    try:
        try:
            interrupts.enter(attempt)
            # Long enough for the interrupting thread to get its turn in here, or just after.
            sum(range(10_000))
        finally:
            interrupts.leave(attempt)
    except BaseException as error:  # noqa: BLE001
        interrupts.forget(attempt)
        return error
    interrupts.forget(attempt)
    return None
