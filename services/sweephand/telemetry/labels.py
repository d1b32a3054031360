"""The closed sets that metric labels are taken from, and the cap on those that applications choose."""

from enum import StrEnum
from threading import Lock


class EnqueueErrorReason(StrEnum):
    """Why a dispatch or one of its rows did not become a job."""

    ARGUMENTS = "arguments"
    STATEMENT_TIMEOUT = "statement_timeout"
    STATEMENT = "statement"
    DATABASE = "database"


class ClockReference(StrEnum):
    """Whose clock this process's clock is compared with."""

    POSTGRES = "postgres"
    APISERVER = "apiserver"


class AcquiredHow(StrEnum):
    """How the lead was gained."""

    CREATED = "created"
    RELEASED = "released"
    EXPIRED = "expired"
    RESUMED = "resumed"


class LostReason(StrEnum):
    """Why the lead ended."""

    SHUTDOWN = "shutdown"
    TAKEN = "taken"
    FENCED = "fenced"
    FORBIDDEN = "forbidden"
    STUCK = "stuck"
    ERROR = "error"
    FROZEN = "frozen"


class DiscardReason(StrEnum):
    """Why a job was discarded."""

    MAX_ATTEMPTS = "max_attempts"
    REQUESTED = "requested"
    ARGUMENTS = "arguments"
    LOST = "lost"


class EnqueueOutcomeLabel(StrEnum):
    """What became of an enqueue in a request."""

    ENQUEUED = "enqueued"
    DUPLICATE = "duplicate"


class PoolState(StrEnum):
    """What a connection of the pool is doing."""

    IDLE = "idle"
    IN_USE = "in_use"


class DatabaseErrorClass(StrEnum):
    """What kind of trouble PostgreSQL reported, by SQLSTATE."""

    CONNECTION = "connection"
    READ_ONLY = "read_only"
    TIMEOUT = "timeout"
    CONFLICT = "conflict"
    INTEGRITY = "integrity"
    RESOURCES = "resources"
    OTHER = "other"

    @classmethod
    def of(cls, sqlstate: str | None) -> "DatabaseErrorClass":
        """Return the class of an SQLSTATE; None, a failure before the server spoke, is a lost connection."""
        if sqlstate is None or sqlstate.startswith(("08", "57P")):
            return cls.CONNECTION
        if sqlstate == "25006":
            return cls.READ_ONLY
        if sqlstate in {"57014", "55P03"}:
            return cls.TIMEOUT
        by_class = {"40": cls.CONFLICT, "23": cls.INTEGRITY, "53": cls.RESOURCES}
        return by_class.get(sqlstate[:2], cls.OTHER)


class CappedNames:
    """Let the first names through and call the rest `other`, so that an application cannot flood the metrics.

    Thread-safe.
    """

    def __init__(self, limit: int = 200) -> None:
        self._limit = limit
        self._known: set[str] = set()
        self._lock = Lock()

    def label(self, name: str) -> str:
        """Return the name, or `other` if it is new and as many names as the limit are known."""
        if name in self._known:
            return name
        with self._lock:
            if len(self._known) < self._limit:
                self._known.add(name)
        return name if name in self._known else "other"
