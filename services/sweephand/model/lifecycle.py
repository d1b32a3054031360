"""Say how a job gets from state to state: the one table, by itself in LIFE and by an operator's verb in VERBS.

The worker's statements follow LIFE, the operator's statements are made from VERBS, and docs/reference/jobs.md shows both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from sweephand.model.states import JobState


@dataclass(frozen=True, slots=True)
class Transition:
    """Be one way of a job from state to state; `sources` is empty for a job that is new."""

    event: str
    sources: tuple[JobState, ...]
    target: JobState
    when: str


class JobVerb(StrEnum):
    """Name what an operator can do to a job from outside."""

    RETRY = "retry"
    CANCEL = "cancel"
    DISCARD = "discard"
    DELETE = "delete"

    @property
    def past(self) -> str:
        """Return the word for a job to which it was done."""
        return _PAST[self]


@dataclass(frozen=True, slots=True)
class Effect:
    """Be what a verb does to a job in some state; `state` None means that the job is gone."""

    state: JobState | None
    what: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """Be why a verb does nothing to a job in some state; `reason` goes on after `job 42 `."""

    reason: str


@dataclass(frozen=True, slots=True)
class VerbRule:
    """Hold what a verb does in each state, and which states it means when a filter names none."""

    by_state: Mapping[JobState, Effect | Refusal]
    unless_said: tuple[JobState, ...]

    def allowed(self) -> tuple[JobState, ...]:
        """Return the states in which the verb does something."""
        return tuple(state for state, rule in self.by_state.items() if isinstance(rule, Effect))


WAITING = (JobState.SCHEDULED, JobState.AVAILABLE, JobState.RETRYABLE)
UNFINISHED = (*WAITING, JobState.RUNNING)
FINISHED = (JobState.COMPLETED, JobState.DISCARDED, JobState.CANCELLED)

_RUNNING = (JobState.RUNNING,)
LIFE: tuple[Transition, ...] = (
    Transition("enqueued", (), JobState.AVAILABLE, "it may start at once"),
    Transition("enqueued", (), JobState.SCHEDULED, "it was enqueued with `at` or `after`"),
    Transition(
        "claimed",
        WAITING,
        JobState.RUNNING,
        "its time has come and a worker has room; an attempt is counted, and a job that is "
        "unique until its start gives its key away for good",
    ),
    Transition("completed", _RUNNING, JobState.COMPLETED, "the function returned, or completed the job itself and committed"),
    Transition("retried", _RUNNING, JobState.RETRYABLE, "the function raised, and attempts are left"),
    Transition("discarded", _RUNNING, JobState.DISCARDED, "the last attempt raised, or the function raised DiscardJob"),
    Transition("cancelled", _RUNNING, JobState.CANCELLED, "the function raised CancelJob, or did not complete after `cancel`"),
    Transition("snoozed", _RUNNING, JobState.SCHEDULED, "the function raised Snooze; the attempt does not count"),
    Transition("interrupted", _RUNNING, JobState.AVAILABLE, "the worker was stopped; the attempt does not count"),
    Transition("given back", _RUNNING, JobState.AVAILABLE, "the worker claimed it and was stopped before the start"),
    Transition("lost", _RUNNING, JobState.RETRYABLE, "the worker was not heard of any more, and attempts are left"),
    Transition("lost", _RUNNING, JobState.DISCARDED, "the worker was not heard of any more, in the last attempt"),
    Transition("lost", _RUNNING, JobState.CANCELLED, "the worker was not heard of any more, after `cancel`"),
)

_BUSY = Refusal("is running; wait for it or cancel it first")
VERBS: Mapping[JobVerb, VerbRule] = MappingProxyType(
    {
        JobVerb.RETRY: VerbRule(
            {
                JobState.SCHEDULED: Effect(JobState.AVAILABLE, "starts now and not at its time"),
                JobState.AVAILABLE: Refusal("is available already; a worker takes it as soon as one has room"),
                JobState.RUNNING: _BUSY,
                JobState.RETRYABLE: Effect(JobState.AVAILABLE, "starts now and not after its backoff"),
                JobState.COMPLETED: Effect(JobState.AVAILABLE, "runs again"),
                JobState.DISCARDED: Effect(JobState.AVAILABLE, "runs again, with at least one more attempt"),
                JobState.CANCELLED: Effect(JobState.AVAILABLE, "runs after all"),
            },
            unless_said=(JobState.RETRYABLE, JobState.DISCARDED),
        ),
        JobVerb.CANCEL: VerbRule(
            {
                JobState.SCHEDULED: Effect(JobState.CANCELLED, "never runs"),
                JobState.AVAILABLE: Effect(JobState.CANCELLED, "never runs"),
                JobState.RUNNING: Effect(JobState.RUNNING, "is interrupted: its worker hears of it within 2 s"),
                JobState.RETRYABLE: Effect(JobState.CANCELLED, "never runs again"),
                JobState.COMPLETED: Refusal("is completed; there is nothing left to cancel"),
                JobState.DISCARDED: Refusal("is discarded; there is nothing left to cancel"),
                JobState.CANCELLED: Refusal("is cancelled already"),
            },
            unless_said=UNFINISHED,
        ),
        JobVerb.DISCARD: VerbRule(
            {
                JobState.SCHEDULED: Effect(JobState.DISCARDED, "never runs, and counts as failed"),
                JobState.AVAILABLE: Effect(JobState.DISCARDED, "never runs, and counts as failed"),
                JobState.RUNNING: _BUSY,
                JobState.RETRYABLE: Effect(JobState.DISCARDED, "never runs again, and counts as failed"),
                JobState.COMPLETED: Refusal("is completed; there is nothing left to discard"),
                JobState.DISCARDED: Refusal("is discarded already"),
                JobState.CANCELLED: Refusal("is cancelled; there is nothing left to discard"),
            },
            unless_said=WAITING,
        ),
        JobVerb.DELETE: VerbRule(
            {
                JobState.SCHEDULED: Effect(None, "is gone without a trace, its attempts too"),
                JobState.AVAILABLE: Effect(None, "is gone without a trace, its attempts too"),
                JobState.RUNNING: _BUSY,
                JobState.RETRYABLE: Effect(None, "is gone without a trace, its attempts too"),
                JobState.COMPLETED: Effect(None, "is gone, its attempts too"),
                JobState.DISCARDED: Effect(None, "is gone, its attempts too"),
                JobState.CANCELLED: Effect(None, "is gone, its attempts too"),
            },
            unless_said=FINISHED,
        ),
    }
)

_PAST: Mapping[JobVerb, str] = MappingProxyType(
    {
        JobVerb.RETRY: "made available",
        JobVerb.CANCEL: "cancelled",
        JobVerb.DISCARD: "discarded",
        JobVerb.DELETE: "deleted",
    }
)
