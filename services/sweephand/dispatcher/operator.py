"""Run inside a cluster, as a kopf operator that watches one Lease and writes nothing.

kopf gives the process's life (startup, signals, cleanup), the login, and a watch that wakes the elector at a change of the
Lease. The election itself uses neither kopf's peering, which is none, nor its API client, which retries for minutes:
`kubernetes.py` has a deadline for each request. Liveness is asked of the process's own /livez, which answers from a thread, so
that it still does when the event loop hangs; kopf's probe would hang with it.

On SIGTERM the elector ends the work and releases the Lease at once, while kopf is stopped by its flag; kopf's `on.cleanup` waits
for the elector. If kopf itself fails (an error in a watch's stream is fatal to it), it is started anew beside the elector,
which goes on meanwhile and only learns of changes a little later. That is why `kopf.operator` is not used: at its end it cancels
every task of the event loop, whoever made it; and why the signals are ours: one that comes between two lives of kopf must
not be lost.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import kopf
import structlog
from kopf._cogs.structs.credentials import Vault  # what spawn_tasks takes as `vault`; kopf exports no name for it

from sweephand.dispatcher.api_access import ApiAccess, TokenFile
from sweephand.dispatcher.elector import Elector
from sweephand.dispatcher.lease_elector import exit_at_once

_LEASES = ("coordination.k8s.io", "v1", "leases")
_LOGIN_AGAIN = timedelta(minutes=1)
_LEAST_LOGIN_SECONDS = 2.0
_MOST_BACKOFF_SECONDS = 5.0
_REQUEST_SECONDS = 10.0
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_QUIET_LOGGERS = (
    "aiohttp.access",
    "kopf._core.engines.activities",
    "kopf.activities.authentication",
    "kopf.activities.probe",
    "kopf.objects",
)


class EndlessBackoffs:
    """Be the waits between tries that never run out: kopf ends after its last one, and a leader must go on."""

    def __iter__(self) -> Iterator[float]:
        """Yield 1, 2, 4 and then 5 s for ever."""
        seconds = 1.0
        while True:
            yield seconds
            seconds = min(seconds * 2, _MOST_BACKOFF_SECONDS)


async def run_operator(
    access: ApiAccess,
    *,
    namespace: str,
    lease_name: str,
    identity: str,
    make_elector: Callable[[], Elector],
    lead_with: Callable[[Elector], Awaitable[None]],
    exit_seconds: float,
) -> None:
    """Run until SIGTERM or SIGINT, with `lead_with` beside kopf; it is stopped through its elector and waited for.

    `identity` is this process's name for kopf, which tells nobody. `make_elector` is called once, in the event loop.
    `lead_with` must end soon after `elector.stop()`; what it raises ends the operator and is raised here. A process that
    has not ended `exit_seconds` after a signal is ended at once.
    """
    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    operator = _Operator(access, namespace=namespace, identity=identity, elector=make_elector(), lead_with=lead_with)
    await operator.run(_settings(lease_name), exit_seconds=exit_seconds)


class _Operator:
    """One elector's contention, and beside it kopf, as often as it takes."""

    def __init__(
        self,
        access: ApiAccess,
        *,
        namespace: str,
        identity: str,
        elector: Elector,
        lead_with: Callable[[Elector], Awaitable[None]],
    ) -> None:
        self._access = access
        self._namespace = namespace
        self._identity = identity
        self._elector = elector
        self._lead_with = lead_with
        self._token = TokenFile(access.token_path) if access.token_path else None
        self._logged_in_at = -_LEAST_LOGIN_SECONDS
        self._contention: asyncio.Task[None] | None = None
        self._is_failing = False
        self._is_stopping = asyncio.Event()
        self._exit_timer: asyncio.TimerHandle | None = None
        self._log = structlog.get_logger("sweephand.dispatcher.operator")

    async def run(self, settings: kopf.OperatorSettings, *, exit_seconds: float) -> None:
        """Run kopf until a signal or the end of the contention; then the contention has ended too."""
        loop = asyncio.get_running_loop()
        backoffs = iter(EndlessBackoffs())
        try:
            while not self._is_stopping.is_set():
                failure = await self._run_kopf(settings, exit_seconds=exit_seconds)
                if failure is not None:
                    self._log.warning("watch_failed", error=repr(failure))
                    with suppress(TimeoutError):
                        async with asyncio.timeout(next(backoffs)):
                            await self._is_stopping.wait()
        finally:
            await self._stop()  # kopf's cleanup has done it already, unless kopf was not there
            for number in _STOP_SIGNALS:
                loop.remove_signal_handler(number)
            if self._exit_timer is not None:
                self._exit_timer.cancel()
        if self._contention is not None:
            await self._contention

    async def _run_kopf(self, settings: kopf.OperatorSettings, *, exit_seconds: float) -> BaseException | None:
        """Run kopf once; return what it failed of, or None if it was to stop."""
        self._is_failing = False
        # kopf's own would be closed only by an end that nothing hurries: a failed kopf leaves its HTTP session open.
        vault = Vault()
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=settings,
            standalone=True,
            namespaces=[self._namespace],
            stop_flag=self._is_stopping,
            vault=vault,
            # Without one kopf asks for the user's name, which a container with a number for a user does not have.
            identity=self._identity,  # type: ignore[arg-type]  # a NewType of str that kopf does not export
        )
        self._listen(exit_seconds)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            failure = next((error for task in done if not task.cancelled() and (error := task.exception())), None)
            self._is_failing = failure is not None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            await vault.close()
        return failure

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        @kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
        async def start(**_: object) -> None:
            if self._contention is None:
                self._contention = asyncio.create_task(_run(self._lead_with, self._elector), name="contention")
                self._contention.add_done_callback(lambda _: self._is_stopping.set())

        @kopf.on.login(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
        async def login(**_: object) -> kopf.ConnectionInfo:
            return await self._login()

        @kopf.on.event(*_LEASES, registry=registry)
        async def wake(event: kopf.RawEvent, **_: object) -> None:
            version = event["object"].get("metadata", {}).get("resourceVersion")
            self._elector.wake(None if event["type"] == "DELETED" else version)

        @kopf.on.cleanup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
        async def clean_up(**_: object) -> None:
            if not self._is_failing:
                await self._stop()

        return registry

    async def _login(self) -> kopf.ConnectionInfo:
        """Return what kopf logs in with; it asks again after a minute and after each 401."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._logged_in_at + _LEAST_LOGIN_SECONDS - loop.time()))
        self._logged_in_at = loop.time()
        if self._token is not None:
            self._token.read_again()
        return kopf.ConnectionInfo(
            server=self._access.api_url,
            ca_path=self._access.ca_path,
            token=self._token.token() if self._token else None,
            default_namespace=self._namespace,
            # It also makes a refused token another login: kopf ends when the same one is offered twice.
            expiration=datetime.now(UTC) + _LOGIN_AGAIN,
        )

    async def _stop(self) -> None:
        """End the contention gracefully, the Lease released."""
        self._is_stopping.set()
        if self._contention is not None:
            self._elector.stop()
            await asyncio.wait([self._contention])

    def _listen(self, exit_seconds: float) -> None:
        """Take the signals from kopf."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            if not self._is_stopping.is_set():
                self._is_stopping.set()
                self._elector.stop()  # kopf takes its time before it comes to its cleanup
                self._exit_timer = loop.call_later(exit_seconds, exit_at_once)

        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, end)


async def _run(lead_with: Callable[[Elector], Awaitable[None]], elector: Elector) -> None:
    await lead_with(elector)


def _settings(lease_name: str) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.networking.request_timeout = _REQUEST_SECONDS
    settings.networking.connect_timeout = _REQUEST_SECONDS / 2
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.queueing.exit_timeout = 0.1  # nothing waits in its queues that would matter
    # It would kill the process after every end of kopf; ours counts from the signal.
    settings.process.ultimate_exiting_timeout = None
    # With this selector RBAC can name the one Lease (resourceNames) for list and watch.
    settings.watching.field_selectors[_LEASES[0], _LEASES[2]] = f"metadata.name={lease_name}"
    return settings
