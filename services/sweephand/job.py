"""Describe a job: the function that mends one row, and the rules under which it runs."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, Literal, ParamSpec

from sweephand.model.arguments import Parameters
from sweephand.model.errors import ArgumentsError

if TYPE_CHECKING:
    from sweephand.postgres.enqueue import EnqueueOutcome

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Unique:
    """Say when two jobs of a kind are duplicates; `args` None means that all arguments count.

    `cool_down`: how long after its completion a job still makes equal ones duplicates; None means no time at all.
    """

    mode: Literal["unfinished", "until_start"] | None
    args: tuple[str, ...] | None
    cool_down: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Job(Generic[P]):
    """Be a job as registered with `@app.job`. Calling it runs the function at once, as in a test.

    `scheduled_at` and `delay` are set by `at` and `after`: when the job may start, instead of now.
    """

    kind: str
    function: Callable[P, object]
    queue: str
    max_attempts: int
    timeout: timedelta
    unique: Unique
    aliases: tuple[str, ...]
    retain: timedelta | None
    backoff: Callable[[int], float]
    parameters: Parameters
    scheduled_at: datetime | None = None
    delay: timedelta | None = None

    @property
    def is_async(self) -> bool:
        """Tell whether the function is `async def` and runs on the worker's event loop."""
        return inspect.iscoroutinefunction(self.function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> object:
        """Run the function here and now, without the queue."""
        return self.function(*args, **kwargs)

    def at(self, moment: datetime) -> "Job[P]":
        """Return this job, to start at `moment` (aware) or later: `enqueue(session, job.at(noon), product_id=7)`.

        Raises:
            ArgumentsError: the moment has no time zone.
        """
        if moment.utcoffset() is None:
            raise ArgumentsError(f"{self.kind}.at({moment.isoformat()}) has no time zone; pass an aware datetime")
        return replace(self, scheduled_at=moment, delay=None)

    def after(self, delay: timedelta) -> "Job[P]":
        """Return this job, to start `delay` after now by the database's clock, or later."""
        return replace(self, scheduled_at=None, delay=delay)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> "EnqueueOutcome":
        """Enqueue in a transaction of its own, on a connection of its own to `DATABASE_URL`.

        For code that has no transaction to join. Anything that also writes domain rows uses `sweephand.enqueue`, or the two
        can part when the process dies between them.

        Raises:
            ArgumentsError: the arguments do not fit.
            SettingsError: DATABASE_URL is not set.
            DatabaseError: PostgreSQL cannot be reached.
        """
        from sweephand.postgres.send import send

        return send(self, self.encode(self.bind(*args, **kwargs)))

    def bind(self, *args: P.args, **kwargs: P.kwargs) -> Mapping[str, object]:
        """Return the arguments by name.

        Raises:
            ArgumentsError: the positional arguments do not fit the signature.
        """
        if not args:
            return kwargs
        try:
            return inspect.signature(self.function).bind(*args, **kwargs).arguments
        except TypeError as error:
            raise ArgumentsError(f"{self.kind}: {error}") from error

    def encode(self, arguments: Mapping[str, object]) -> str:
        """Return the arguments as the JSON text that is stored.

        Raises:
            ArgumentsError: a value does not fit its parameter or cannot be stored, with its path.
        """
        return self.parameters.encode(arguments)

    def decode(self, stored: Mapping[str, object]) -> dict[str, object]:
        """Return the stored arguments as the function takes them.

        Raises:
            ArgumentsError: they do not fit the parameters.
        """
        return self.parameters.decode(stored)
