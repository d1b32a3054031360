"""Put a worker together, start its threads, and bring them to a soft stop."""

import logging
import time
from collections.abc import Sequence
from functools import partial
from threading import Event

import structlog
from dramatiq import Worker
from dramatiq.actor import Actor
from dramatiq.asyncio import EventLoopThread, set_event_loop_thread
from dramatiq.broker import Broker
from dramatiq.middleware import AsyncIO, Middleware

from sweephand.app import App
from sweephand.settings import Settings
from sweephand.telemetry import DatabaseMetrics, WorkerMetrics
from sweephand.worker.attempts import Attempt, Interruption
from sweephand.worker.broker import JobBroker, JobConsumer
from sweephand.worker.claimer import Claimer
from sweephand.worker.counts import WorkerCounts
from sweephand.worker.finisher import MOST_UNWRITTEN, Finisher
from sweephand.worker.heart import Heart
from sweephand.worker.interrupts import Interrupts
from sweephand.worker.job_log import JobLog
from sweephand.worker.job_queue import JobQueue
from sweephand.worker.link import DatabaseLink
from sweephand.worker.listener import Listener
from sweephand.worker.messages import AttemptMessage
from sweephand.worker.room import Room
from sweephand.worker.runner import Runner
from sweephand.worker.wake import Wake

# What a stop may take beyond the grace: interrupted jobs clean up, the last outcomes are written.
_LAST_CLAIM_SECONDS = 1.0
_CLEAN_UP_SECONDS = 2.0
_LAST_WRITE_SECONDS = 3.0
_IDLE_LOOK_MILLISECONDS = 5_000


class Engine:
    """All threads of one worker process."""

    def __init__(self, app: App, settings: Settings, *, metrics: WorkerMetrics, database_metrics: DatabaseMetrics) -> None:
        self.queues = settings.worker_queues or app.queues()
        self.stopping = Event()
        self.is_hastened = False
        self._has_started = False
        self._settings = settings
        self._metrics = metrics
        name = settings.identity
        links = [
            DatabaseLink(
                settings.database_url,
                application_name=f"sweephand worker {role}",
                prepare=settings.prepared_statements,
                metrics=database_metrics,
                is_by_index=role != "heart",
            )
            for role in ("claims", "finishes", "heart")
        ]
        self._links = links
        self._room = Room(settings.worker_threads)
        self._interrupts = Interrupts()
        self._log = JobLog()
        self._finisher = Finisher(
            link=links[1],
            room=self._room,
            worker_name=name,
            counts=WorkerCounts(metrics, log=self._log),
            on_written=self._wake_limited_queues,
        )
        self.heart = Heart(
            link=links[2],
            name=name,
            app_name=app.name,
            queues=self.queues,
            slots=settings.worker_threads,
            heartbeat_seconds=settings.heartbeat_seconds,
            rescue_after_seconds=settings.rescue_after_seconds,
            interrupts=self._interrupts,
            log=self._log,
            metrics=metrics,
            reason_not_to_claim=self._reason_not_to_claim,
        )
        self._claimer = Claimer(app, link=links[0], room=self._room, standing=self.heart, stopping=self.stopping)
        self._wakes = {queue: Wake() for queue in self.queues}
        self._listener = self._make_listener() if settings.listen else None
        self._job_queue = JobQueue()
        self._broker = self._make_broker(app)
        self._worker = Worker(
            self._broker,
            queues=set(self.queues),
            worker_threads=settings.worker_threads,
            worker_timeout=_IDLE_LOOK_MILLISECONDS,
        )
        self._worker.work_queue = self._job_queue
        self._show_metrics(app)

    def start(self) -> None:
        """Start every thread; the worker must be registered."""
        self._interrupts.start()
        self._finisher.start()
        self.heart.start()
        if self._listener is not None:
            self._listener.start()
        self._broker.emit_after("process_boot")
        self._worker.start()
        self._has_started = True

    def database_problem(self) -> str | None:
        """Return why the database cannot be used, for people; None if it can."""
        return next((link.problem for link in self._links if link.problem is not None and self._is_used(link)), None)

    def dead_threads(self) -> list[str]:
        """Return the names of threads that should live and do not."""
        if not self._has_started:
            return []
        parts: list[tuple[str, bool]] = [
            ("finisher", self._finisher.is_alive),
            ("heart", self.heart.is_alive),
            ("time limits", self._interrupts.is_alive),
            ("listener", self._listener is None or self._listener.is_alive),
        ]
        parts += [(f"worker thread {number}", thread.is_alive()) for number, thread in enumerate(self._worker.workers, 1)]
        parts += [(f"consumer of {queue}", thread.is_alive()) for queue, thread in self._worker.consumers.items()]
        return [name for name, is_alive in parts if not is_alive]

    def stop(self) -> bool:
        """Stop softly; return whether every running job ended by itself. Takes the grace and some seconds at most.

        Nothing is claimed from now on, and what is claimed but not started goes back at once. What runs may go on for
        the grace, or until `is_hastened` is set; then it is interrupted and handed back with its attempt uncounted.
        """
        deadline = time.monotonic() + self._settings.grace_seconds
        self.heart.say_stopping()
        self._stop_claiming()
        while not self._room.wait_until_empty(0.1) and time.monotonic() < deadline and not self.is_hastened:
            self._release_unstarted()
        interrupted = self._interrupts.interrupt_all(Interruption.SHUTDOWN)
        if interrupted:
            structlog.get_logger().warning("running_jobs_interrupted", jobs=len(interrupted))
            self._room.wait_until_empty(_CLEAN_UP_SECONDS)
        for attempt in self._interrupts.running():
            # It hangs where it cannot be interrupted. The process ends now, and with it the attempt.
            self._finisher.abandon(attempt)
        if not self._finisher.drain(_LAST_WRITE_SECONDS):
            structlog.get_logger().warning("outcomes_not_written", attempts=self._finisher.unwritten)
        self._end_threads()
        return not interrupted

    def _stop_claiming(self) -> None:
        self.stopping.set()
        self._room.close()
        for wake in self._wakes.values():
            wake.set()
        self._release_unstarted()
        self._claimer.wait_for_claim(_LAST_CLAIM_SECONDS)
        self._release_unstarted()

    def _release_unstarted(self) -> None:
        """Give back what no thread has started; a claim that is under way gives its jobs back itself."""
        unstarted = [message.attempt for message in self._job_queue.take_all() if isinstance(message, AttemptMessage)]
        for consumer in self._broker.consumers:
            unstarted += consumer.take_back()
        if unstarted:
            self._finisher.release(unstarted)
            structlog.get_logger().info("unstarted_jobs_released", jobs=len(unstarted))

    def _end_threads(self) -> None:
        for consumer_thread in self._worker.consumers.values():
            consumer_thread.stop()
        for thread in self._worker.workers:
            thread.stop()
        self._job_queue.wake(len(self._worker.workers))
        self._finisher.stop()
        self.heart.stop()
        self._interrupts.stop()
        if self._listener is not None:
            self._listener.stop()

    def _wake_limited_queues(self, written: Sequence[Attempt]) -> None:
        """Claim again from queues whose concurrency limit these attempts no longer take up."""
        limited = self.heart.limited_queues
        if limited:
            for queue in limited.intersection(attempt.queue for attempt in written):
                self._wakes[queue].set()

    def _reason_not_to_claim(self) -> str | None:
        unwritten = self._finisher.unwritten
        return None if unwritten < MOST_UNWRITTEN else f"{unwritten} outcomes wait to be written"

    def _is_used(self, link: DatabaseLink) -> bool:
        # The finisher connects when something has ended for the first time.
        return link is not self._links[1] or self._finisher.unwritten > 0

    def _make_listener(self) -> Listener:
        return Listener(
            self._settings.listen_database_url or self._settings.database_url,
            application_name="sweephand worker listener",
            wakes=self._wakes,
            metrics=self._metrics,
        )

    def _make_broker(self, app: App) -> JobBroker:
        def make_consumer(queue: str) -> JobConsumer:
            return JobConsumer(
                queue,
                claimer=self._claimer,
                finisher=self._finisher,
                job_queue=self._job_queue,
                wake=self._wakes[queue],
                poll_seconds=self._settings.poll_interval_seconds,
            )

        has_async = any(job.is_async for job in app.jobs.values())
        middleware: list[Middleware] = [EventLoop()] if has_async else []
        broker = JobBroker(make_consumer=make_consumer, middleware=middleware, queues=self.queues)
        runner = Runner(app, interrupts=self._interrupts, log=self._log, stopping=self.stopping)
        for job in app.jobs.values():
            Actor(runner.run, broker=broker, actor_name=job.kind, queue_name=job.queue, priority=0, options={})
        return broker

    def _show_metrics(self, app: App) -> None:
        self._metrics.slots.set(self._settings.worker_threads)
        for job in app.jobs.values():
            for queue in self.queues:
                if queue == job.queue:
                    self._metrics.declare(queue, kind=job.kind)
        for queue in self.queues:
            self._metrics.in_progress.labels(queue).set_function(partial(self._count_running, queue))

    def _count_running(self, queue: str) -> int:
        return sum(attempt.queue == queue for attempt in self._interrupts.running())


class EventLoop(AsyncIO):
    """Run async jobs on one event loop, in a thread that never keeps the process from ending."""

    def before_worker_boot(self, broker: Broker, worker: Worker) -> None:  # noqa: ARG002 - dramatiq's interface
        """Start the loop."""
        thread = EventLoopThread(self.logger)
        thread.daemon = True
        thread.start(timeout=5.0)
        set_event_loop_thread(thread)


def quieten_dramatiq() -> None:
    """Keep what dramatiq says of each message out of the log; an attempt's end is told by the job log."""
    logging.getLogger("dramatiq").setLevel(logging.ERROR)
