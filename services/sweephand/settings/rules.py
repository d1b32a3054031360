"""Rules on settings that a type and two bounds cannot say. Each raises or returns what is allowed, in words."""

import re
from urllib.parse import urlsplit

_APP = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
_QUEUE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_SCHEMES = frozenset({"postgresql", "postgres", "postgresql+psycopg"})


def refuse_service_link(value: object) -> object:
    """Refuse what Kubernetes puts into `SWEEPHAND_API_PORT` beside a Service of the name `sweephand-api`."""
    if isinstance(value, str) and value.startswith("tcp://"):
        raise ValueError(
            "must be a port number; this one is Kubernetes' link to a Service of that name: "
            "set enableServiceLinks: false in the pod"
        )
    return value


def checked_database_url(value: str) -> str:
    """Return the URL if it names a PostgreSQL database. The message of the error never repeats the value."""
    try:
        parts = urlsplit(value)
        is_valid = parts.scheme in _SCHEMES and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError("must be of the form postgresql://user:password@host:5432/name (the value is a secret, not shown)")
    return value


def checked_app(value: str) -> str:
    """Return the target if it is of the form `module:attribute`."""
    if not _APP.fullmatch(value):
        raise ValueError("must be of the form module:attribute, as in storefront.app:app")
    return value


def split_queues(value: object) -> object:
    """Return the queues of a comma list, in order and without repetition; anything but text as it came."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        return value
    queues = tuple(dict.fromkeys(name.strip() for name in names if isinstance(name, str) and name.strip()))
    for queue in queues:
        if not _QUEUE.fullmatch(queue):
            raise ValueError(
                f"must be queue names separated by commas; {queue!r} is none: use 1 to 40 of a-z, 0-9, _ . - "
                "and begin with a letter or digit"
            )
    return queues


def port_problems(api_port: int, *, metrics_port: int) -> list[str]:
    """Return what is wrong between the two ports."""
    if api_port == metrics_port != 0:
        return [f"SWEEPHAND_API_PORT={api_port} and SWEEPHAND_METRICS_PORT={metrics_port}: must be two different ports"]
    return []


def rescue_problems(rescue_after_seconds: float, *, heartbeat_seconds: float) -> list[str]:
    """Return what is wrong between the heartbeat and the time after which silence means death."""
    if rescue_after_seconds < 3 * heartbeat_seconds:
        rescue = f"SWEEPHAND_RESCUE_AFTER_SECONDS={rescue_after_seconds:g}"
        heartbeat = f"SWEEPHAND_HEARTBEAT_SECONDS={heartbeat_seconds:g}"
        needed = f"the first must be at least three times the second, so {3 * heartbeat_seconds:g} or more"
        return [f"{rescue} and {heartbeat}: {needed}"]
    return []


def lease_problems(lease_duration_seconds: int, *, renew_deadline_seconds: float, retry_period_seconds: float) -> list[str]:
    """Return what is wrong between the lease's durations: lease > deadline > 1.2 × retry.

    Source: client-go, tools/leaderelection (JitterFactor 1.2).
    """
    problems = []
    deadline = f"SWEEPHAND_RENEW_DEADLINE_SECONDS={renew_deadline_seconds:g}"
    if renew_deadline_seconds >= lease_duration_seconds:
        problems.append(
            f"SWEEPHAND_LEASE_DURATION_SECONDS={lease_duration_seconds} and {deadline}: "
            "the lease must be longer than the deadline"
        )
    if renew_deadline_seconds <= 1.2 * retry_period_seconds:
        problems.append(
            f"{deadline} and SWEEPHAND_RETRY_PERIOD_SECONDS={retry_period_seconds:g}: "
            f"the deadline must be more than 1.2 times the retry period, so more than {1.2 * retry_period_seconds:g}"
        )
    return problems
