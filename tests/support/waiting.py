"""Wait for a condition with a deadline: the only place in the tests where time is let pass."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_SECONDS = 0.01


def until(condition: Callable[[], T], *, deadline_seconds: float = 30, every_seconds: float = _POLL_SECONDS, message: str) -> T:
    """Return the condition's first true value; fail with the message if there is none before the deadline.

    The condition is asked at once, then every so often. What it raises is not caught.
    """
    deadline = time.monotonic() + deadline_seconds
    while not (value := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(_give_up(message, deadline_seconds=deadline_seconds, value=value))
        time.sleep(every_seconds)  # noqa: TID251
    return value


async def until_async(condition: Callable[[], Awaitable[T]], *, deadline_seconds: float = 30, message: str) -> T:
    """Do what `until` does for a condition that is awaited, and let other tasks run between."""
    deadline = time.monotonic() + deadline_seconds
    while not (value := await condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(_give_up(message, deadline_seconds=deadline_seconds, value=value))
        await asyncio.sleep(_POLL_SECONDS)
    return value


def _give_up(message: str, *, deadline_seconds: float, value: object) -> str:
    return f"{message}: not within {deadline_seconds:g} s; the condition was last {value!r}"
