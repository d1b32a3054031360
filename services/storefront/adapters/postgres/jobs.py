"""Jobs in PostgreSQL, beside the shop's own rows."""

from collections.abc import Callable

from sqlalchemy.orm import Session

import sweephand
from storefront.ports import JobKind
from sweephand import App


class SweephandJobs:
    """Fulfil the JobQueue port within the unit of work whose open session `session()` returns."""

    def __init__(self, session: Callable[[], Session], *, app: App) -> None:
        self._session = session
        self._app = app

    def enqueue(self, kind: JobKind, **arguments: int) -> None:
        """Insert the job in the session's transaction."""
        sweephand.enqueue(self._session(), self._app.jobs[kind], **arguments)
