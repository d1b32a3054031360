"""Run inside a cluster, as a kopf operator that watches one Lease and writes nothing.

kopf gives the process's life (startup, signals, cleanup), the login, and a watch that wakes the elector at a change of the
Lease. The election itself uses neither kopf's peering, which is none, nor its API client, which retries for minutes:
`kubernetes.py` has a deadline for each request. Liveness is asked of the process's own /livez, which answers from a thread, so
that it still does when the event loop hangs; kopf's probe would hang with it.

On SIGTERM kopf calls `on.cleanup`, which ends the work and releases the Lease. It does not when its coroutine is cancelled, so
nothing here cancels it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

import kopf

from sweephand.dispatcher.api_access import ApiAccess, TokenFile
from sweephand.dispatcher.elector import Elector

_LEASES = ("coordination.k8s.io", "v1", "leases")
_LOOK_AFRESH = timedelta(minutes=5)
_MOST_BACKOFF_SECONDS = 30.0
_QUIET_LOGGERS = ("kopf.objects", "kopf.activities.probe", "kopf.activities.authentication", "aiohttp.access")


class EndlessBackoffs:
    """Be the waits between tries that never run out: kopf ends the process after its last one, and a leader must go on."""

    def __iter__(self) -> Iterator[float]:
        """Yield 1, 2, 4 … and then 30 s for ever."""
        seconds = 1.0
        while True:
            yield seconds
            seconds = min(seconds * 2, _MOST_BACKOFF_SECONDS)


async def run_operator(
    access: ApiAccess,
    *,
    namespace: str,
    lease_name: str,
    make_elector: Callable[[], Elector],
    lead_with: Callable[[Elector], Awaitable[None]],
    exit_seconds: float,
) -> None:
    """Run until SIGTERM or SIGINT, with `lead_with` beside kopf; it is stopped through its elector and waited for.

    `make_elector` is called in the event loop. `exit_seconds` is when kopf kills a process that does not end.
    """
    registry = kopf.OperatorRegistry()
    contention: list[tuple[Elector, asyncio.Task[None]]] = []

    @kopf.on.startup(registry=registry)
    async def start(settings: kopf.OperatorSettings, **_: object) -> None:
        _configure(settings, lease_name=lease_name, exit_seconds=exit_seconds)
        elector = make_elector()
        contention.append((elector, asyncio.create_task(_run(lead_with, elector), name="elector")))

    @kopf.on.login(registry=registry)
    def login(**_: object) -> kopf.ConnectionInfo:
        return _connection_info(access, namespace=namespace)

    @kopf.on.event(*_LEASES, registry=registry)
    async def wake(meta: Mapping[str, object], **_: object) -> None:
        for elector, _task in contention:
            elector.wake(str(meta.get("resourceVersion") or "") or None)

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: object) -> None:
        for elector, task in contention:
            elector.stop()
            await task

    for name in _QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    await kopf.operator(registry=registry, standalone=True, namespaces=[namespace])


async def _run(lead_with: Callable[[Elector], Awaitable[None]], elector: Elector) -> None:
    await lead_with(elector)


def _configure(settings: kopf.OperatorSettings, *, lease_name: str, exit_seconds: float) -> None:
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.networking.error_backoffs = EndlessBackoffs()
    settings.process.ultimate_exiting_timeout = exit_seconds
    # With this selector RBAC can name the one Lease (resourceNames) for list and watch.
    settings.watching.field_selectors[_LEASES[0], _LEASES[2]] = f"metadata.name={lease_name}"


def _connection_info(access: ApiAccess, *, namespace: str) -> kopf.ConnectionInfo:
    """Return what kopf logs in with; it asks again every 5 minutes, long before a short-lived token ends."""
    return kopf.ConnectionInfo(
        server=access.api_url,
        ca_path=access.ca_path,
        token=TokenFile(access.token_path).token() if access.token_path else None,
        default_namespace=namespace,
        expiration=datetime.now(UTC) + _LOOK_AFRESH,
    )
