"""Name everything that sweephand raises on purpose; a class's docstring says when, its message says what to do."""


class SweephandError(Exception):
    """Be the root of all errors of the engine, so that callers can catch them as one."""


class NotFoundError(SweephandError):
    """Say that a job, sweep or queue of this name or id does not exist."""


class ConflictError(SweephandError):
    """Say that the request does not fit the present state, for example a retry of a running job."""


class NoTransactionError(SweephandError):
    """Say that `enqueue` was called without an open transaction of the caller's."""


class ArgumentsError(SweephandError):
    """Say that a job's arguments do not fit its parameters or cannot be stored, with the path of the value."""


class AppError(SweephandError):
    """Say that an application does not load or breaks a rule: where, which rule, and how to mend it."""


class SettingsError(SweephandError):
    """Say that a setting has a value that is not allowed: its name, the value and what is allowed."""


class StaleAttemptError(SweephandError):
    """Say that a job completes itself in an attempt that no longer holds it: it was rescued, or has ended already."""


class FencedError(SweephandError):
    """Say that a later term exists, so the transaction of this one wrote nothing and its leader stands down."""


class DatabaseError(SweephandError):
    """Say that PostgreSQL could not be reached or refused the connection."""


class NotMigratedError(SweephandError):
    """Say that the database's schema is not the one that this version needs."""
