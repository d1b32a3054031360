"""Bound what a statement may take, also where nobody answers.

Cancelling is not enough: psycopg first asks the server to cancel and then waits for its answer, which never comes from a
server that is frozen behind a network that is not. So the socket is cut.
"""

import asyncio
import os
import socket
from collections.abc import Coroutine
from contextlib import suppress
from typing import TypeVar

import psycopg

T = TypeVar("T")

_CANCEL_SECONDS = 0.5


async def bounded(connection: psycopg.AsyncConnection, work: Coroutine[object, object, T], *, seconds: float) -> T:
    """Await work on the connection; past the time, or when cancelled, end it within about a second.

    The server is asked to cancel first, so that it gives up its locks; if that does not end the work, the connection is cut.
    Whether a COMMIT in flight was carried out is then unknown.

    Raises:
        TimeoutError: the work took longer.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(connection, task)
        raise
    if not done:
        await _end(connection, task)
        raise TimeoutError(f"not done within {seconds:g} s")
    return task.result()


async def _end(connection: psycopg.AsyncConnection, task: "asyncio.Future[T]") -> None:
    try:
        if not task.done():
            with suppress(psycopg.Error):
                await connection.cancel_safe(timeout=_CANCEL_SECONDS)
            await asyncio.wait({task}, timeout=_CANCEL_SECONDS)
    finally:
        if not task.done():
            _cut(connection)
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # it was given up: how it ended is nobody's question


def _cut(connection: psycopg.AsyncConnection) -> None:
    with suppress(psycopg.OperationalError, OSError), socket.socket(fileno=os.dup(connection.fileno())) as one:
        one.shutdown(socket.SHUT_RDWR)
