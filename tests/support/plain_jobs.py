"""Functions that more than one application of the tests registers as jobs."""

from datetime import timedelta
from pathlib import Path

from sweephand import CancelJob, DiscardJob, RetryJob, Snooze
from tests.support.waiting import until

_LONG_SECONDS = 300.0


def noop(n: int = 0) -> None:
    """Do nothing."""


def hold(gate: str) -> None:
    """Run until the file is there; can be interrupted at any time."""
    until(Path(gate).exists, deadline_seconds=_LONG_SECONDS, message="the gate opens")


def fail(message: str) -> None:
    """Fail."""
    raise ValueError(message)


def end_by(signal_name: str) -> None:
    """End the attempt in the way that the name says."""
    match signal_name:
        case "snooze":
            raise Snooze(timedelta(seconds=90))
        case "cancel":
            raise CancelJob("the product is gone")
        case "discard":
            raise DiscardJob("the price is negative")
        case _:
            raise RetryJob(timedelta(seconds=45))
