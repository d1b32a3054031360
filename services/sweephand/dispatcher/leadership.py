"""One leadership, as its work sees it."""

from collections.abc import Callable

from sweephand.dispatcher.lease import Clock


class Leadership:
    """The time from gaining the lead to losing it, which the work gets as its argument.

    The work must call `beat` at least every `stall_seconds`, raise FencedError (alone or in a group) or call `fenced` when
    the database says that a later term exists, and end soon when it is cancelled.
    """

    def __init__(
        self,
        identity: str,
        *,
        clock: Clock,
        trust_seconds: Callable[[], float],
        stall_seconds: float,
        signal: Callable[[], None],
    ) -> None:
        self.identity = identity
        self._clock = clock
        self._trust_seconds = trust_seconds
        self._stall_seconds = stall_seconds
        self._signal = signal
        self._beaten_at = clock.moment()
        self._has_ended = False
        self._is_fenced = False

    def is_confirmed(self) -> bool:
        """Whether it is certain that nobody else leads. Ends by itself, without a word from the elector."""
        return not self._has_ended and self._trust_seconds() > 0

    def is_unconfirmed(self) -> bool:
        """Whether it goes on although nobody confirms the lease."""
        return not self._has_ended and not self.is_confirmed()

    def has_ended(self) -> bool:
        """Whether the lead is lost or given up; the work is being cancelled, or soon will be."""
        return self._has_ended

    def beat(self) -> None:
        """Say that the work makes progress."""
        self._beaten_at = self._clock.moment()

    def fenced(self) -> None:
        """Say that the work found a later term: the lead ends at once."""
        self._is_fenced = True
        self._signal()

    # What follows is the elector's side.

    def patience_seconds(self) -> float:
        """Return how long the work may still go without a beat; not above 0 when it is stuck."""
        return self._stall_seconds - self._beaten_at.elapsed(until=self._clock.moment())

    def was_fenced(self) -> bool:
        """Whether the work called `fenced`."""
        return self._is_fenced

    def end(self) -> None:
        """Let every question from now on be answered with no."""
        self._has_ended = True
