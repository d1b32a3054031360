"""Hold the rules of sweephand that need no I/O: states, backoff, arguments, schedules, tick planning."""
