"""One transaction over products, orders and jobs."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from storefront.adapters.postgres.failures import translated_failures
from storefront.adapters.postgres.jobs import SweephandJobs
from storefront.adapters.postgres.orders import PostgresOrders
from storefront.adapters.postgres.products import PostgresProducts
from storefront.domain.errors import UnitOfWorkClosedError
from sweephand import App


class PostgresUnitOfWork:
    """Fulfil the UnitOfWork port with one session, in whose transaction everything happens."""

    def __init__(self, session: Session, *, app: App) -> None:
        self._transaction_session = session
        self.products = PostgresProducts(self._session)
        self.orders = PostgresOrders(self._session)
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
        StorageUnavailableError: PostgreSQL cannot be used now.
    """
    with translated_failures(), Session(engine) as session, session.begin():
        yield PostgresUnitOfWork(session, app=app)
