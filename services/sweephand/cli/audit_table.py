"""Show who did what."""

from collections.abc import Sequence
from datetime import datetime

from sweephand.cli.output import relative_text, utc_text
from sweephand.cli.tables import Column, write_table
from sweephand.postgres.audit import AuditEntry


def write_audit(audit: Sequence[AuditEntry], *, now: datetime) -> None:
    """Write entries of the audit."""
    columns = (
        Column("AT"),
        Column("AGO", yields=1),
        Column("WHO", least=12),
        Column("DID"),
        Column("NOTE", least=24),
    )
    rows = [[utc_text(one.at), relative_text(one.at, now=now), one.actor, one.action, one.note or ""] for one in audit]
    write_table(columns, rows, nothing="nothing")
