"""Say in the shop's own words that PostgreSQL cannot be used now."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from storefront.domain.errors import StorageUnavailableError

# Source: PostgreSQL's appendix "Error Codes": undefined_table, invalid_schema_name.
NOT_MIGRATED = frozenset({"42P01", "3F000"})


@contextmanager
def translated_failures() -> Iterator[None]:
    """Turn SQLAlchemy's errors of the block into StorageUnavailableError; a mistake in a statement stays what it is.

    Raises:
        StorageUnavailableError: PostgreSQL cannot be reached, is read-only or not migrated, or gave up on the transaction.
    """
    try:
        yield
    except PoolTimeoutError as error:
        raise StorageUnavailableError("all connections to the database are in use; try again later") from error
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) in NOT_MIGRATED:
            raise StorageUnavailableError("the database has no tables yet; run `sweephand migrate`") from error
        if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
            raise StorageUnavailableError("the database cannot be reached; try again later") from error
        raise
