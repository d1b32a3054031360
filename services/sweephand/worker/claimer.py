"""Claim jobs for the consumers of one process, over one connection."""

import time
from secrets import token_hex
from threading import Event, Lock
from typing import Protocol

import psycopg
import structlog

from sweephand.app import App
from sweephand.model.errors import DatabaseError
from sweephand.postgres.claim import HeldAttempt, claim, release, release_claim
from sweephand.worker.attempts import Attempt
from sweephand.worker.link import Backoff, DatabaseLink
from sweephand.worker.room import CLAIM_BATCH, Room

_RESERVE_SECONDS = 1.0


class Standing(Protocol):
    """What the claimer asks about its own worker."""

    @property
    def worker_id(self) -> int:
        """The id that claims carry."""

    @property
    def limited_queues(self) -> frozenset[str]:
        """The queues whose concurrency limit has to be asked for."""

    def reason_not_to_claim(self) -> str | None:
        """Return why nothing should be claimed now, for people; None if nothing speaks against it."""


class Claimer:
    """Claim as many jobs as there is room for. Thread-safe: consumers of several queues take turns."""

    def __init__(self, app: App, *, link: DatabaseLink, room: Room, standing: Standing, stopping: Event) -> None:
        self._app = app
        self._kinds = app.kinds()
        self._link = link
        self._room = room
        self._standing = standing
        self._stopping = stopping
        self._turn = Lock()
        self._backoff = Backoff()
        self._unsure: list[tuple[int, str]] = []
        self._drained: set[str] = set()

    def has_drained(self, queue: str) -> bool:
        """Tell whether the last claim got less than it had room for, so that it is time to wait for the next job."""
        return queue in self._drained

    def claim(self, queue: str) -> list[Attempt]:
        """Wait up to a second for room and claim due jobs of the queue; none after a failure, once its backoff is over."""
        self._drained.discard(queue)
        reserved = self._room.reserve(_RESERVE_SECONDS)
        if not reserved:
            return []
        limit = min(reserved, CLAIM_BATCH)
        attempts: list[Attempt] = []
        wait_seconds = 0.0
        try:
            reason = self._standing.reason_not_to_claim()
            if reason is None:
                with self._turn:
                    attempts = self._claim(queue, limit)
            else:
                wait_seconds = self._failed(reason)
        except DatabaseError as error:
            wait_seconds = self._failed(str(error))
        finally:
            self._room.give_back(reserved - len(attempts))
        if wait_seconds:
            self._stopping.wait(wait_seconds)
        elif len(attempts) < limit:
            self._drained.add(queue)
        return attempts

    def wait_for_claim(self, timeout_seconds: float) -> None:
        """Wait until no claim is under way; once the room is closed, what the last one brought has been given back."""
        if self._turn.acquire(timeout=timeout_seconds):
            self._turn.release()

    def _claim(self, queue: str, limit: int) -> list[Attempt]:
        token, worker_id = token_hex(16), self._standing.worker_id
        with self._link.use() as conn:
            self._settle(conn)
            # If the answer gets lost, the jobs may be ours all the same: nobody else would ever give them back.
            self._unsure.append((worker_id, token))
            rows = claim(
                conn,
                queue=queue,
                kinds=self._kinds,
                limit=limit,
                worker_id=worker_id,
                claim_token=token,
                is_queue_limited=queue in self._standing.limited_queues,
            )
            if self._room.is_closed:
                release(conn, [HeldAttempt(row.job_id, row.attempt, token) for row in rows])
                rows = []
            self._unsure.pop()
            if self._backoff.succeeded():
                structlog.get_logger().info("claims_resumed", queue=queue)
            now = time.monotonic()
            attempts: list[Attempt] = []
            for row in rows:
                job = self._app.job_for(row.kind)
                if job is not None:  # only known kinds are asked for
                    attempts.append(Attempt(row, job=job, queue=queue, claim_token=token, claimed_monotonic=now))
        return attempts

    def _settle(self, conn: psycopg.Connection) -> None:
        while self._unsure:
            worker_id, token = self._unsure[-1]
            released = release_claim(conn, worker_id=worker_id, claim_token=token)
            self._unsure.pop()
            if released:
                structlog.get_logger().warning("lost_claim_released", jobs=released)

    def _failed(self, reason: str) -> float:
        wait_seconds = self._backoff.failed()
        structlog.get_logger().warning("claim_failed", retry_in_seconds=wait_seconds, reason=reason)
        return wait_seconds
