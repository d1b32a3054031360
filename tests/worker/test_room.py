import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from sweephand.worker.room import CLAIM_BATCH, Room
from tests.support.waiting import until
from tests.worker.attempts import make_attempt


def _end(room: Room, number: int) -> None:
    for _ in range(number):
        room.end(make_attempt())


def test_the_room_is_the_free_threads() -> None:
    room = Room(4)

    first = room.reserve(0)
    when_full = room.reserve(0)
    _end(room, 3)
    afterwards = room.reserve(0)

    assert (first, when_full, afterwards) == (4, 0, 3)


def test_slow_jobs_are_never_claimed_ahead() -> None:
    room = Room(2)
    room.reserve(0)
    started = time.monotonic()
    # Two jobs in more than a tenth of a second: less than one would be done in the time looked ahead.
    until(lambda: time.monotonic() - started > 0.25, message="time passes")
    _end(room, 2)

    assert room.reserve(0) == 2


def test_fast_jobs_are_claimed_ahead_up_to_a_batch() -> None:
    room = Room(10)

    def keep_going() -> int:
        reserved = room.reserve(0)
        _end(room, reserved)
        return reserved

    most = until(lambda: keep_going() >= 10 + CLAIM_BATCH, message="the look-ahead grows to a batch")

    assert most


def test_room_that_was_not_filled_comes_back() -> None:
    room = Room(4)
    room.reserve(0)

    room.give_back(4)

    assert room.reserve(0) == 4
    assert room.held == 4


def test_room_that_comes_back_does_not_disturb_whoever_waits_for_what_ends() -> None:
    room = Room(4)
    room.reserve(0)
    ended = make_attempt()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(room.take, 10, timeout_seconds=30)
        until(lambda: room.waiters == 1, message="it waits")

        room.give_back(3)
        room.end(ended)

        assert taken.result(30) == [ended]


def test_whoever_waits_for_room_is_woken_by_the_job_that_makes_it() -> None:
    room = Room(1)
    room.reserve(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(room.reserve, 30)
        _end(room, 1)

        assert waiting.result(5) == 1


def test_nobody_who_waits_is_forgotten_when_many_threads_end_jobs() -> None:
    room = Room(8)
    start = Barrier(5)

    def work() -> None:
        start.wait(10)
        for _ in range(500):
            room.end(make_attempt())

    def claim() -> int:
        start.wait(10)
        claimed = 0
        while claimed < 2_000:
            claimed += room.reserve(5)
        return claimed

    with ThreadPoolExecutor(5) as pool:
        claims = pool.submit(claim)
        for _ in range(4):
            pool.submit(work)

        assert claims.result(30) >= 2_000


def test_what_ended_is_taken_in_its_order_and_only_once() -> None:
    room = Room(4)
    attempts = [make_attempt(job_id=number) for number in range(5)]
    for attempt in attempts:
        room.end(attempt)

    first, second, third = room.take(3), room.take(3), room.take(3, timeout_seconds=0)

    assert first + second == attempts
    assert third == []


def test_a_closed_room_has_no_room() -> None:
    room = Room(4)
    with ThreadPoolExecutor(1) as pool:
        room.reserve(0)
        waiting = pool.submit(room.reserve, 30)

        room.close()

        assert waiting.result(5) == 0


def test_the_end_of_the_last_held_job_ends_the_wait_for_it() -> None:
    room = Room(2)
    room.reserve(0)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(room.wait_until_empty, 30)
        room.end_unstarted([make_attempt()])
        _end(room, 1)

        assert waiting.result(5) is True


def test_the_wait_for_the_last_job_is_bounded() -> None:
    room = Room(1)
    room.reserve(0)

    assert room.wait_until_empty(0.01) is False
