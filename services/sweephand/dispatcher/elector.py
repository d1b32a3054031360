"""What an election offers to the dispatcher, and what it tells to whoever watches it."""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sweephand.dispatcher.leadership import Leadership
from sweephand.model.lease import LeaseFailure
from sweephand.telemetry.labels import AcquiredHow, LostReason

Work = Callable[[Leadership], Awaitable[None]]
"""What a leader does, until it is cancelled. It is called anew for every leadership."""

AskFence = Callable[[], Awaitable[bool]]
"""Whether the term of the present leadership is still the last one."""


def unique_identity(name: str) -> str:
    """Return the name with a random end, so that a restarted process never takes its predecessor's lease for its own."""
    return f"{name}_{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class ElectionStatus:
    """What one candidate can say about the election now.

    Attributes:
        holder: whose name was last seen in the record; None if nobody's.
        since: when this candidate's present leadership began; None while it follows.
        last_error: why the last request for the lease failed; None once one succeeded.
    """

    identity: str
    is_leader: bool
    is_confirmed: bool
    holder: str | None
    since: datetime | None
    last_error: str | None

    @property
    def is_unconfirmed(self) -> bool:
        """Whether it goes on leading although nobody confirms its lease."""
        return self.is_leader and not self.is_confirmed


class ElectionObserver(Protocol):
    """Be told what happens in an election, for metrics. Called in the event loop; must neither wait nor raise."""

    def acquired(self, how: AcquiredHow) -> None:
        """A leadership began."""
        ...

    def lost(self, reason: LostReason) -> None:
        """A leadership ended."""
        ...

    def unconfirmed(self, is_unconfirmed: bool) -> None:  # noqa: FBT001 the one value it tells
        """The leader is no longer, or again, sure of its lease."""
        ...

    def renew_seconds(self, seconds: float) -> None:
        """A request for the lease took this long, answered or not."""
        ...

    def renew_error(self, failure: LeaseFailure) -> None:
        """A request for the lease failed."""
        ...


class Silence:
    """An observer that keeps it all to itself."""

    def acquired(self, how: AcquiredHow) -> None:
        """Ignore it."""

    def lost(self, reason: LostReason) -> None:
        """Ignore it."""

    def unconfirmed(self, is_unconfirmed: bool) -> None:  # noqa: FBT001 the protocol's form
        """Ignore it."""

    def renew_seconds(self, seconds: float) -> None:
        """Ignore it."""

    def renew_error(self, failure: LeaseFailure) -> None:
        """Ignore it."""


class Elector(Protocol):
    """Let one of many processes lead. All methods belong to one event loop, except `status` and `is_live`.

    The contract, which its tests check: `lead` runs in at most one confirmed process at a time; it is cancelled when the
    lead is lost, and called anew when it is gained again.
    """

    @property
    def identity(self) -> str:
        """This process's name in the record, the ledger and the logs."""
        ...

    @property
    def status(self) -> ElectionStatus:
        """What it knows now. May be read from any thread."""
        ...

    async def run(self, lead: Work) -> None:
        """Contend for ever, and run `lead` while leading. Returns after `stop`, once the lease is released. Runs once."""
        ...

    def wake(self, version: str | None = None) -> None:
        """Look at the record now: a watch saw a change, to this version if it knows."""
        ...

    def stop(self) -> None:
        """Begin the graceful end; `run` returns soon."""
        ...

    def is_live(self) -> str | None:
        """Return None, or why this process must be restarted. May be called from any thread."""
        ...
