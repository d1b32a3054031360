"""One transaction over products and jobs."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from storefront.adapters.postgres.jobs import SweephandJobs
from storefront.adapters.postgres.products import PostgresProducts
from storefront.domain.errors import StorageUnavailableError, UnitOfWorkClosedError
from sweephand import App


class PostgresUnitOfWork:
    """Fulfil the UnitOfWork port with one session, in whose transaction everything happens."""

    def __init__(self, session: Session, *, app: App) -> None:
        self._transaction_session = session
        self.products = PostgresProducts(self._session)
        self.jobs = SweephandJobs(self._session, app=app)

    def _session(self) -> Session:
        # Asked at every call: a session that is used after its end would begin a transaction that nobody commits.
        if not self._transaction_session.in_transaction():
            raise UnitOfWorkClosedError("the unit of work has ended; open another: with new_unit_of_work() as uow")
        return self._transaction_session


@contextmanager
def postgres_unit_of_work(engine: Engine, *, app: App) -> Iterator[PostgresUnitOfWork]:
    """Open a transaction for the block: commit at its end, roll back on an exception.

    Raises:
        StorageUnavailableError: PostgreSQL cannot be reached, is read-only for now, or gave up on the transaction.
    """
    try:
        with Session(engine) as session, session.begin():
            yield PostgresUnitOfWork(session, app=app)
    except PoolTimeoutError as error:
        raise StorageUnavailableError("all connections to the database are in use; try again later") from error
    except DBAPIError as error:
        if isinstance(error, OperationalError | InterfaceError) or error.connection_invalidated:
            raise StorageUnavailableError("the database cannot be reached; try again later") from error
        raise
