"""The dispatcher process: contend for the lease, lead while holding it, and export the backlog in any case."""

import asyncio
import math
import os
import signal
from contextlib import ExitStack, suppress

import structlog

from sweephand.app import App
from sweephand.dispatcher.api_access import ApiAccess
from sweephand.dispatcher.election_metrics import ElectionMetrics
from sweephand.dispatcher.elector import Elector, unique_identity
from sweephand.dispatcher.gauges import gauges_lane
from sweephand.dispatcher.lane_watch import LaneWatch
from sweephand.dispatcher.lanes import run_lane
from sweephand.dispatcher.leading import Leading
from sweephand.dispatcher.lease import ProcessLease
from sweephand.dispatcher.lease_elector import LeaseElector
from sweephand.model.errors import SettingsError
from sweephand.model.lease import LeaseStore, LeaseTimings
from sweephand.postgres.lease_row import PostgresLease
from sweephand.settings import ElectorKind, Settings
from sweephand.telemetry import BacklogMetrics, ClockReference, DatabaseMetrics, DispatcherMetrics, LeaderMetrics, create_registry
from sweephand.web.database_watch import DatabaseWatch
from sweephand.web.endpoints import serve_endpoints

_LOOK_SECONDS = 0.5
_LEASE_LABELS = {"app.kubernetes.io/name": "sweephand", "app.kubernetes.io/component": "dispatcher"}


def run(app: App, settings: Settings) -> int:
    """Run the application's dispatcher until SIGTERM or SIGINT; return the exit code.

    A database or an API server that is away never ends the process: it waits, is not ready, and says why.

    Raises:
        AppError: a sweep's SELECT cannot be written as SQL.
        SettingsError: a port cannot be had, or the cluster cannot be found where the elector is `kubernetes`.
    """
    with ExitStack() as closing:
        dispatcher = Dispatcher(app, settings)
        closing.callback(dispatcher.close)
        structlog.get_logger("sweephand.dispatcher").info(
            "dispatcher_started",
            app=app.name,
            identity=dispatcher.identity,
            elector=settings.elector.value,
            sweeps=len(app.sweeps),
            metrics_port=dispatcher.metrics_port,
        )
        asyncio.run(dispatcher.serve())
    return 0


class Dispatcher:
    """Be one dispatcher process: its endpoints, its elector and its work. `close` it after `serve`."""

    def __init__(self, app: App, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self.identity = unique_identity(settings.identity)
        registry = create_registry(settings)
        self._metrics = DispatcherMetrics.create(registry)
        self._backlog_metrics = BacklogMetrics.create(registry)
        leader_metrics = LeaderMetrics.create(registry)
        for sweep in app.sweeps:
            self._metrics.declare(sweep)
            self._backlog_metrics.declare_sweep(sweep)
        for queue in app.queues():
            self._backlog_metrics.declare_queue(queue)
        self._observer = ElectionMetrics(leader_metrics, lease_name=settings.lease_name_for(app.name))
        self._lanes = LaneWatch()
        self._leading = Leading(
            app,
            settings,
            identity=self.identity,
            metrics=self._metrics,
            leader_metrics=leader_metrics,
            watch=self._lanes,
        )
        self._elector: Elector | None = None
        self._watch = DatabaseWatch(
            settings.database_url,
            application_name="sweephand dispatcher probe",
            metrics=DatabaseMetrics.create(registry),
            prepare=settings.prepared_statements,
        )
        self._endpoints = serve_endpoints(
            settings.metrics_port,
            registry=registry,
            is_live=lambda: None if self._elector is None else self._elector.is_live(),
            is_ready=self._reason_not_ready,
            host=settings.api_host,
        )

    @property
    def metrics_port(self) -> int:
        """The TCP port of /livez, /readyz and /metrics."""
        return self._endpoints.port

    def close(self) -> None:
        """Stop answering probes and asking the database."""
        self._endpoints.close()
        self._watch.close()

    async def serve(self) -> None:
        """Contend and lead until SIGTERM or SIGINT; the lease is released before it returns."""
        if self._settings.elector is ElectorKind.KUBERNETES:
            await self._serve_in_cluster()
            return
        store = self._store()
        # No watch wakes a follower here, so it looks often: a released lease is taken over within half a second.
        elector = self.make_elector(store, look_seconds=min(_LOOK_SECONDS, self._settings.retry_period_seconds))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, elector.stop)
        try:
            await self.lead_with(elector)
        finally:
            await store.close()

    def make_elector(self, store: LeaseStore, *, look_seconds: float | None = None) -> Elector:
        """Return this process's elector over `store`; must be called in the event loop."""
        return LeaseElector(
            store,
            identity=self.identity,
            timings=LeaseTimings(
                lease_seconds=self._settings.lease_duration_seconds,
                renew_deadline_seconds=self._settings.renew_deadline_seconds,
                retry_period_seconds=self._settings.retry_period_seconds,
            ),
            ask_fence=self._leading.is_latest_term,
            observer=self._observer,
            look_seconds=look_seconds,
        )

    async def lead_with(self, elector: Elector) -> None:
        """Run the elector and, beside it, the backlog's gauges, until the elector is stopped."""
        self._elector = elector
        gauges = asyncio.create_task(
            run_lane(
                gauges_lane(self._app, metrics=self._backlog_metrics, dispatcher_metrics=self._metrics),
                database_url=self._settings.database_url,
                metrics=self._metrics,
                watch=self._lanes,
            ),
            name="gauges",
        )
        try:
            await elector.run(self._leading.lead)
        finally:
            gauges.cancel()
            with suppress(asyncio.CancelledError):
                await gauges

    def _reason_not_ready(self) -> str | None:
        """Return why; any thread may ask. That another replica leads is no reason."""
        if self._elector is None:
            return "the elector has not started"
        return self._watch.problem() or self._lanes.problem()

    async def _serve_in_cluster(self) -> None:
        from sweephand.dispatcher.kubernetes import KubernetesLease
        from sweephand.dispatcher.operator import run_operator

        url = self._settings.kubernetes_api_url
        access = ApiAccess(url) if url else ApiAccess.in_cluster(os.environ)
        namespace = self._settings.lease_namespace
        if namespace is None:
            raise SettingsError("SWEEPHAND_LEASE_NAMESPACE is not set, and no service account says it; set it, or the elector")
        lease_name = self._settings.lease_name_for(self._app.name)
        store = KubernetesLease(access, namespace=namespace, name=lease_name, labels=_LEASE_LABELS)
        offset = self._metrics.clock_offset_seconds.labels(ClockReference.APISERVER.value)
        offset.set_function(lambda: math.nan if store.clock_offset_seconds is None else store.clock_offset_seconds)
        try:
            await run_operator(
                access,
                namespace=namespace,
                lease_name=lease_name,
                identity=self.identity,
                make_elector=lambda: self.make_elector(store),
                lead_with=self.lead_with,
                exit_seconds=self._settings.grace_seconds,
            )
        finally:
            await store.close()

    def _store(self) -> LeaseStore:
        if self._settings.elector is ElectorKind.ALWAYS:
            return ProcessLease()
        return PostgresLease(
            self._settings.database_url,
            name=self._settings.lease_name_for(self._app.name),
            prepare=self._settings.prepared_statements,
        )
