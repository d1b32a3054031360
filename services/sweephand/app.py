"""Collect an application's jobs and sweeps: `App` is the registry that `@app.job` and `@app.sweep` fill.

Nothing here does I/O. A rule that an application breaks is refused where it is broken, at import, with the fix.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, ParamSpec

from sweephand.context import JobContext
from sweephand.job import Job, Unique
from sweephand.model.arguments import parameters_of
from sweephand.model.backoff import backoff_seconds
from sweephand.model.errors import AppError
from sweephand.model.schedule import make_schedule
from sweephand.model.ticks import CatchUp, CatchUpMode, Overlap, TickPolicy
from sweephand.sweep import Sweep

if TYPE_CHECKING:
    from sqlalchemy import SelectBase

P = ParamSpec("P")
Message = MutableMapping[str, object]
ASGIApp = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,59}")
_QUEUE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_DEFAULT_TIMEOUT = timedelta(minutes=10)
_MAX_ATTEMPTS_BOUND = 1_000
_SCAN_BOUND_FACTOR = 10


class App:
    """Hold an application's jobs and sweeps under one name.

    `http` makes the ASGI application that `sweephand api` serves; `migrate` is called with the database URL by
    `sweephand migrate`, after the engine's own migration, to bring the application's tables up to date. `on_error` is
    called for every attempt that failed, as it ends retried or discarded, with the job and the exception: in the attempt's
    thread and context, after its time limit's end, so it should be quick. What it raises itself is logged, no more.

    Raises:
        AppError: the name is not like `tidy` or `shop.orders`: lower case, digits, `_`, `.` and `-`, at most 60 characters.
    """

    def __init__(
        self,
        name: str,
        *,
        http: Callable[[], ASGIApp] | None = None,
        migrate: Callable[[str], None] | None = None,
        on_error: Callable[[JobContext, BaseException], object] | None = None,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise AppError(f"App({name!r}): a name is lower-case letters, digits, _ . and -, at most 60; for example 'tidy'")
        self.name = name
        self.http = http
        self.migrate = migrate
        self.on_error = on_error
        self._jobs: dict[str, Job[...]] = {}
        self._by_alias: dict[str, Job[...]] = {}
        self._sweeps: dict[str, Sweep] = {}

    @property
    def jobs(self) -> Mapping[str, Job[...]]:
        """Return the jobs by kind."""
        return MappingProxyType(self._jobs)

    @property
    def sweeps(self) -> Mapping[str, Sweep]:
        """Return the sweeps by name."""
        return MappingProxyType(self._sweeps)

    def queues(self) -> tuple[str, ...]:
        """Return the queues that the jobs name, in order of the alphabet."""
        return tuple(sorted({job.queue for job in self._jobs.values()}))

    def kinds(self) -> tuple[str, ...]:
        """Return every kind that this application can run, former names (aliases) too."""
        return (*self._jobs, *self._by_alias)

    def job_for(self, kind: str) -> Job[...] | None:
        """Return the job of this kind or former name; None if the application has none."""
        return self._jobs.get(kind) or self._by_alias.get(kind)

    def job(
        self,
        *,
        kind: str | None = None,
        queue: str = "default",
        max_attempts: int = 25,
        timeout: timedelta = _DEFAULT_TIMEOUT,
        unique: Literal["unfinished", "until_start"] | None = "unfinished",
        unique_args: tuple[str, ...] | None = None,
        cool_down: timedelta | None = None,
        aliases: tuple[str, ...] = (),
        retain: timedelta | None = None,
        backoff: Callable[[int], float] = backoff_seconds,
    ) -> Callable[[Callable[P, object]], Job[P]]:
        """Register a function as a job; its parameters are the job's arguments.

        Args:
            kind: the job's name in the database; None means the function's name. Rename with `aliases`.
            queue: workers choose queues; use one for each urgency.
            max_attempts: from 1 to 1,000; how often the job may run before it is discarded.
            timeout: what one attempt may take, 10 minutes unless said.
            unique: "unfinished": a second job with equal arguments is a duplicate until the first has finished;
                "until_start": only until the first starts; None: never.
            unique_args: the arguments that count for being equal; None means all.
            cool_down: how long after its completion a job still makes equal ones duplicates; only with "unfinished".
            aliases: former kinds whose jobs still lie in the database.
            retain: how long a finished job is kept; None means the settings' time for its state.
            backoff: the wait in seconds after the attempt of this number failed; attempt⁴ unless said.

        Raises:
            AppError: a name is taken, a value is out of range, or a parameter has a type that JSON cannot carry.
        """

        def register(function: Callable[P, object]) -> Job[P]:
            where = _where(function)
            name = kind if kind is not None else getattr(function, "__name__", "")
            owner = f"{where}: job {name}"
            self._check_job(owner, (name, *aliases), queue=queue, max_attempts=max_attempts, timeout=timeout)
            parameters = parameters_of(function, owner=owner)
            for counted in unique_args or ():
                if counted not in parameters.by_name:
                    raise AppError(f"{owner}: unique_args names {counted}, no parameter; it has {', '.join(parameters.by_name)}")
            if cool_down is not None and (unique != "unfinished" or cool_down <= timedelta(0)):
                raise AppError(
                    f"{owner}: cool_down={cool_down} with unique={unique!r}; give a positive time and unique='unfinished'"
                )
            made = Job(
                kind=name,
                function=function,
                queue=queue,
                max_attempts=max_attempts,
                timeout=timeout,
                unique=Unique(mode=unique, args=unique_args, cool_down=cool_down),
                aliases=aliases,
                retain=retain,
                backoff=backoff,
                parameters=parameters,
            )
            self._jobs[name] = made
            self._by_alias.update(dict.fromkeys(aliases, made))
            return made

        return register

    def sweep(
        self,
        *,
        enqueues: Job[...],
        every: timedelta | None = None,
        cron: str | None = None,
        timezone: str = "UTC",
        limit: int = 100,
        scan_bound: int | None = None,
        name: str | None = None,
        run_on_start: bool = True,
        catch_up: Literal["none", "latest"] | int = "latest",
        overlap: Literal["skip", "queue"] = "skip",
        jitter: timedelta = timedelta(0),
        statement_timeout: timedelta = timedelta(seconds=30),
    ) -> "Callable[[Callable[[], SelectBase]], Sweep]":
        """Register a function that returns the SELECT of the rows to mend, oldest first; its columns are the job's arguments.

        Args:
            enqueues: the job to enqueue for each row.
            every: the interval between ticks, 1 s or more.
            cron: instead of `every`: five fields, in `timezone` (an IANA name).
            timezone: where `cron` is read; "UTC" unless said.
            limit: how many new jobs one tick enqueues at most, from 1 to 10,000.
            scan_bound: how many rows one tick looks at in search of new ones; None means 10 × limit.
            name: None means the function's name.
            run_on_start: tick when leadership is gained, unless the present period has had its tick.
            catch_up: what becomes of ticks that nobody ran: "none", "latest" (one for all), or the number of them that run.
            overlap: what becomes of ticks that come due while the one before still runs: "skip" or "queue" (one of them runs).
            jitter: spread: each sweep is later by its own fixed part of this, so that many sweeps do not tick together.
            statement_timeout: what the scan may take before the tick ends as an error.

        Raises:
            AppError: a name is taken, a value is out of range, or the columns are not the job's parameters.
        """

        def register(select: "Callable[[], SelectBase]") -> Sweep:
            label = name if name is not None else getattr(select, "__name__", "")
            owner = f"{_where(select)}: sweep {label}"
            self._check_sweep(owner, label, limit=limit, scan_bound=scan_bound, timeout=statement_timeout, enqueues=enqueues)
            policy = TickPolicy(
                schedule=make_schedule(
                    every=every, cron=cron, timezone=timezone, jitter=jitter, name=f"{self.name}/{label}", owner=owner
                ),
                run_on_start=run_on_start,
                catch_up=_catch_up(owner, catch_up),
                overlap=_overlap(owner, overlap),
            )
            made = Sweep(
                name=label,
                select=select,
                job=enqueues,
                policy=policy,
                limit=limit,
                scan_bound=scan_bound if scan_bound is not None else limit * _SCAN_BOUND_FACTOR,
                statement_timeout=statement_timeout,
            )
            made.check(owner)
            self._sweeps[label] = made
            return made

        return register

    def _check_job(self, owner: str, names: tuple[str, ...], *, queue: str, max_attempts: int, timeout: timedelta) -> None:
        for position, name in enumerate(names):
            if not _NAME.fullmatch(name):
                raise AppError(f"{owner}: the kind {name!r} is not like publish_product; give one with kind='…'")
            if self.job_for(name) is not None or name in names[:position]:
                raise AppError(f"{owner}: the kind {name} is taken in app {self.name}; kinds and aliases are unique")
        if not _QUEUE.fullmatch(queue):
            raise AppError(f"{owner}: queue={queue!r}; a queue is lower-case letters, digits, _ . and -, at most 40")
        if not 1 <= max_attempts <= _MAX_ATTEMPTS_BOUND:
            raise AppError(f"{owner}: max_attempts={max_attempts}; from 1 to {_MAX_ATTEMPTS_BOUND:,} are allowed")
        if timeout <= timedelta(0):
            raise AppError(f"{owner}: timeout={timeout}; give a positive time, such as timedelta(minutes=1)")

    def _check_sweep(
        self, owner: str, label: str, *, limit: int, scan_bound: int | None, timeout: timedelta, enqueues: Job[...]
    ) -> None:
        if not _NAME.fullmatch(label):
            raise AppError(f"{owner}: {label!r} is not like stuck_publications; give one with name='…'")
        if label in self._sweeps:
            raise AppError(f"{owner}: the name is taken in app {self.name}; sweeps have unique names")
        if self._jobs.get(enqueues.kind) is not enqueues:
            raise AppError(f"{owner}: enqueues={enqueues.kind}, a job of another app; register it with @app.job of {self.name}")
        if not 1 <= limit <= 10_000:
            raise AppError(f"{owner}: limit={limit}; from 1 to 10,000 are allowed")
        if scan_bound is not None and scan_bound < limit:
            raise AppError(f"{owner}: scan_bound={scan_bound} is less than limit={limit}; leave it out for 10 × limit")
        if timeout < timedelta(milliseconds=100):
            raise AppError(f"{owner}: statement_timeout={timeout}; 100 ms is the least")


def _where(function: Callable[..., object]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "(not a plain function)"


def _catch_up(owner: str, chosen: "str | int") -> CatchUp:
    if chosen in {"none", "latest"}:
        return CatchUp(CatchUpMode(str(chosen)))
    if isinstance(chosen, int) and not isinstance(chosen, bool) and 1 <= chosen <= 1_000:
        return CatchUp(CatchUpMode.ALL, most=chosen)
    raise AppError(f"{owner}: catch_up={chosen!r}; 'none', 'latest' or a number from 1 to 1,000 is allowed")


def _overlap(owner: str, chosen: str) -> Overlap:
    try:
        return Overlap(chosen)
    except ValueError as error:
        raise AppError(f"{owner}: overlap={chosen!r}; 'skip' or 'queue' is allowed") from error
