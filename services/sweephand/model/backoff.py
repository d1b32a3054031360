"""Decide how long a failed job waits before its next attempt."""

import random
from collections.abc import Callable

MAX_BACKOFF_SECONDS = 400 * 86_400.0


def backoff_seconds(attempt: int, *, jitter: Callable[[float, float], float] = random.uniform) -> float:
    """Return the wait before the next attempt, in seconds, with ±10 % jitter.

    Grows as attempt⁴ (1 s, 16 s, 81 s …), so a long outage is probed ever more rarely; the 25 attempts of a job
    span about three weeks. `attempt` is the one that has just failed and starts at 1. Never more than 400 days,
    so that no schedule overflows whatever max_attempts is.

    Source: River, internal/retrypolicy (attempt⁴, ±10 %).
    """
    return min(float(attempt) ** 4, MAX_BACKOFF_SECONDS) * jitter(0.9, 1.1)
