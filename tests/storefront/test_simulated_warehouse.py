"""The simulated warehouse as a job meets it: slow, and to be interrupted."""

import ctypes
import threading

from storefront.adapters.warehouse.simulated import SimulatedWarehouse
from storefront.domain.product import ProductId


class TimeLimitReachedError(BaseException):
    """Stand for what the worker raises inside a job that takes too long."""


def test_the_time_limit_interrupts_the_wait() -> None:
    warehouse = SimulatedWarehouse(min_delay_seconds=3600, max_delay_seconds=3600, failure_rate=0)
    has_started = threading.Event()
    interrupted: list[TimeLimitReachedError] = []

    def job() -> None:
        try:
            has_started.set()
            warehouse.reserve_stock(ProductId(7))
        except TimeLimitReachedError as error:
            interrupted.append(error)

    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    has_started.wait(timeout=10)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeLimitReachedError))
    thread.join(timeout=10)

    assert len(interrupted) == 1
