"""Define the states of a job and which of them a job can leave.

```
 enqueue ──> available ──claim──> running ──> completed
 enqueue ──> scheduled ──claim──────^ │  ├──> discarded   (attempts used up, or asked for)
                retryable ──claim───┘ │  └──> cancelled
                    ^─────────────────┘  failed, attempts left
```
An unfinished job (scheduled, available, running, retryable) holds its unique key; a finished one gives it back.
"""

from enum import StrEnum


class JobState(StrEnum):
    """Say where a job stands; the value is what the database stores."""

    SCHEDULED = "scheduled"
    AVAILABLE = "available"
    RUNNING = "running"
    RETRYABLE = "retryable"
    COMPLETED = "completed"
    DISCARDED = "discarded"
    CANCELLED = "cancelled"

    @property
    def is_finished(self) -> bool:
        """Tell whether the job will never run again."""
        return self in {JobState.COMPLETED, JobState.DISCARDED, JobState.CANCELLED}

    @property
    def is_claimable(self) -> bool:
        """Tell whether a worker may claim the job once its scheduled_at has come."""
        return self in {JobState.SCHEDULED, JobState.AVAILABLE, JobState.RETRYABLE}
