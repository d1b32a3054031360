import time
from concurrent.futures import ThreadPoolExecutor

from sweephand.worker.wake import Wake


def test_a_signal_wakes_whoever_waits() -> None:
    wake = Wake()
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(wake.take, 30)
        wake.set()

        assert taken.result(10)


def test_a_signal_that_came_before_is_taken_at_once_and_only_once() -> None:
    wake = Wake()
    wake.set()
    wake.set()

    assert [wake.take(0), wake.take(0)] == [True, False]


def test_without_a_signal_the_wait_ends_by_itself() -> None:
    started = time.monotonic()

    assert not Wake().take(0.05)
    assert time.monotonic() - started >= 0.05
