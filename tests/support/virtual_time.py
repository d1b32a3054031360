"""Run several processes' event loops on one virtual clock: days pass in milliseconds, and every run is the same.

Each `VirtualProcess` has a real asyncio loop, but nothing in it waits: when a loop has nothing to do, it says until when,
and the world goes on to the next moment at which any of them, or the world itself, has something to do. A frozen process
(SIGSTOP) is left out, and finds that the time has passed when it is thawed; a killed one is never run again.
"""

import asyncio
import heapq
import math
import selectors
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_MOST_BUSY_TURNS = 5000


class _NothingHappens(selectors.BaseSelector):
    """A selector without I/O: instead of waiting it stops the loop, and remembers until when it would have waited."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._keys: dict[int, selectors.SelectorKey] = {}
        self.wait_seconds: float | None = None
        self._busy_turns = 0

    def register(self, fileobj: "FileDescriptorLike", events: int, data: object = None) -> selectors.SelectorKey:
        descriptor = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = selectors.SelectorKey(fileobj, descriptor, events, data)
        self._keys[descriptor] = key
        return key

    def unregister(self, fileobj: "FileDescriptorLike") -> selectors.SelectorKey:
        return self._keys.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self.wait_seconds = timeout
            self._busy_turns = 0
            self._stop()
        self._busy_turns += 1
        assert self._busy_turns < _MOST_BUSY_TURNS, "a busy loop: it never waits"
        return []

    def get_map(self) -> Mapping[int, selectors.SelectorKey]:  # type: ignore[override]  # a loop asks for numbers only
        return self._keys


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.nothing = _NothingHappens(self.stop)
        super().__init__(self.nothing)

    def time(self) -> float:
        return self._now()


class VirtualProcess:
    """One process: a loop of its own, that can be frozen, thawed and killed."""

    def __init__(self, world: "VirtualWorld", *, name: str) -> None:
        self._world = world
        self.name = name
        self.loop = _Loop(lambda: world.now)
        self.due = world.now
        self.is_frozen = False
        self.is_dead = False

    def spawn(self, main: Coroutine[object, object, None]) -> "asyncio.Task[None]":
        """Run a coroutine in this process."""
        self.due = self._world.now
        return self.loop.create_task(main)

    def call(self, callback: Callable[[], object]) -> None:
        """Let something happen in this process now, or when it is thawed; never if it is dead."""
        if not self.is_dead:
            self.loop.call_soon(callback)
            self.due = self._world.now

    def run_until_idle(self) -> None:
        """Do all that can be done at this moment."""
        self.loop.run_forever()
        wait_seconds = self.loop.nothing.wait_seconds
        self.due = math.inf if wait_seconds is None else self._world.now + wait_seconds

    def close(self) -> None:
        """End what is left of it, without letting time pass."""
        ended: set[asyncio.Task[object]] = set()
        while tasks := asyncio.all_tasks(self.loop):
            ended |= tasks
            for task in tasks:
                task.cancel()
            self.run_until_idle()
        for task in ended:
            with suppress(BaseException):
                task.result()
        self.loop.close()


class VirtualWorld:
    """The clock, the processes, and what happens outside of them."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.processes: list[VirtualProcess] = []
        self.after_each_step: Callable[[], None] = lambda: None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0

    def process(self, name: str) -> VirtualProcess:
        """Start a process."""
        process = VirtualProcess(self, name=name)
        self.processes.append(process)
        return process

    def at(self, seconds: float, event: Callable[[], None]) -> None:
        """Let something happen outside of the processes, in so many seconds."""
        self._count += 1
        heapq.heappush(self._events, (self.now + seconds, self._count, event))

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        steps = 0
        while True:
            steps += 1
            assert steps < 1000 * (seconds + 1), f"a busy loop: {steps} steps in {seconds:g} s"
            running = [process for process in self.processes if not process.is_frozen and not process.is_dead]
            due = min((process.due for process in running), default=math.inf)
            if self._events:
                due = min(due, self._events[0][0])
            if due > until:
                break
            self.now = max(self.now, due)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            for process in running:
                if process.due <= self.now and not process.is_dead:
                    process.run_until_idle()
            self.after_each_step()
        self.now = until
        self.after_each_step()

    def close(self) -> None:
        """End all processes."""
        self._events.clear()
        for process in self.processes:
            process.close()
