"""Every setting of every process: meaning, unit, bounds, and why the default is what it is."""

from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from sweephand.settings import rules
from sweephand.settings.choices import ElectorKind, Environment, LogFormat, LogLevel
from sweephand.settings.defaults import default_elector, default_identity, default_lease_namespace


class Settings(BaseSettings):
    """What a process is told from outside. Immutable; read once by the command, by `load_settings`.

    The variable of a field is its name in capitals after `SWEEPHAND_`, except `DATABASE_URL`.
    """

    model_config = SettingsConfigDict(
        env_prefix="SWEEPHAND_",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    # What runs, and where

    database_url: str = Field(validation_alias="DATABASE_URL", repr=False)
    """The PostgreSQL database, as `postgresql://user:password@host:5432/name`. No default: guessing a database is
    worse than stopping. It is a secret and never printed."""

    app: str | None = None
    """The application to run, as `module:attribute`. None: the command's `--app` says it."""

    environment: Environment = Environment.PRODUCTION
    """`development` or `production`. Production warns of sweeps more frequent than every 60 s. It is the default
    because a warning too many is cheaper than one too few; `sweephand dev` sets development."""

    revision: str = "unknown"
    """The revision that this build was made from, for the build_info metric. The image's build sets it."""

    # Logs

    log_format: LogFormat = LogFormat.CONSOLE
    """`console` for people or `json` for programs. The chart sets json; on a machine someone reads along."""

    log_level: LogLevel = LogLevel.INFO
    """The least severe level written. At `info` a line is a change of state; idle ticks are `debug`."""

    # Ports

    api_host: str = Field(default="0.0.0.0", min_length=1)  # noqa: S104 - a container must listen on its pod's address
    """The address that the API and the health and metrics endpoints listen on. All of them by default, because a
    probe comes from outside of the container; set 127.0.0.1 on a shared machine."""

    api_port: int = Field(default=8000, ge=0, le=65535)
    """The TCP port of the application's API. 0: any free port, named in the log."""

    metrics_port: int = Field(default=9090, ge=0, le=65535)
    """The TCP port of /livez, /readyz and /metrics. A port of its own, so that it is never published with the API.
    0: any free port, named in the log."""

    # Worker

    worker_threads: int = Field(default=10, ge=1, le=256)
    """How many jobs a worker runs at once. Jobs mostly wait for the network; raise it while the processor idles, and
    keep the database's connection limit in mind."""

    worker_queues: Annotated[tuple[str, ...], NoDecode] = ()
    """The queues that the worker serves, separated by commas. Empty: every queue of the application. Name them to give
    a queue workers of its own."""

    grace_seconds: float = Field(default=30, ge=0, le=86400)
    """How long running jobs may go on after SIGTERM, in seconds, before they are interrupted and handed back. Must stay
    below terminationGracePeriodSeconds; raise it to the length of the longest job that should not be repeated."""

    poll_interval_seconds: float = Field(default=1, ge=0.05, le=3600)
    """How often a worker looks for jobs without being notified, in seconds. It bounds the delay when a notification is
    lost; 1 s costs one cheap statement a second."""

    listen: bool = True
    """Whether workers LISTEN for new jobs. Turn it off behind PgBouncer in transaction mode without a direct
    connection: jobs then start within a poll interval."""

    listen_database_url: str | None = Field(default=None, repr=False)
    """A direct connection for LISTEN past a connection pooler, in the form of DATABASE_URL. None: DATABASE_URL itself.
    It is a secret and never printed."""

    prepared_statements: bool = True
    """Whether statements are prepared on the server. Turn it off for a PgBouncer older than 1.21 in transaction
    mode."""

    heartbeat_seconds: float = Field(default=5, ge=0.1, le=3600)
    """How often a worker tells that it lives, in seconds."""

    rescue_after_seconds: float = Field(default=30, ge=0.3, le=86400)
    """How long a worker may be silent, in seconds, before its jobs are given to others. At least three heartbeats, so
    that one lost heartbeat never starts a job twice."""

    # Dispatcher

    elector: ElectorKind = Field(default_factory=default_elector)
    """Who decides which dispatcher leads: a `kubernetes` Lease, a row in `postgres`, or `always` this one (for tests).
    Kubernetes inside a cluster, postgres outside of one."""

    lease_name: str | None = Field(default=None, min_length=1, max_length=253)
    """The name of the Lease or of the row. None: `sweephand-` and the application's name (`lease_name_for`)."""

    lease_namespace: str | None = Field(default_factory=default_lease_namespace, min_length=1, max_length=63)
    """The Kubernetes namespace of the Lease. None only outside of a cluster: the service account's by default."""

    kubernetes_api_url: str | None = Field(default=None, pattern=r"^https?://[^\s/]+/?$")
    """Where the Kubernetes API server is, asked without a token: for example `http://127.0.0.1:8001` of a `kubectl proxy`.
    None: as Kubernetes tells each pod, with the token of its service account."""

    lease_duration_seconds: int = Field(default=15, ge=1, le=3600)
    """How long the others wait after the leader's last renewal, in whole seconds. client-go's number: long enough for a
    slow API server, short enough that a killed leader costs no more than a quarter of a minute."""

    renew_deadline_seconds: float = Field(default=10, ge=0.1, le=3600)
    """How long a leader counts on its last renewal, in seconds. Shorter than the lease, so that it stops first."""

    retry_period_seconds: float = Field(default=2, ge=0.05, le=3600)
    """The time between two renewals or attempts to lead, in seconds. Must fit 1.2 times into the renew deadline."""

    identity: str = Field(default_factory=default_identity, min_length=1, max_length=253)
    """This process's name in the Lease, the ledger and the logs: POD_NAME, else the host's name."""

    # Retention

    completed_retention_hours: float = Field(default=24, ge=0, le=87600)
    """How long completed jobs are kept, in hours. A day answers "did it run?"; a longer history slows every query."""

    cancelled_retention_hours: float = Field(default=24, ge=0, le=87600)
    """How long cancelled jobs are kept, in hours."""

    discarded_retention_hours: float = Field(default=168, ge=0, le=87600)
    """How long discarded jobs are kept, in hours. A week, since someone has to look at them, also after a long
    weekend."""

    tick_retention_days: float = Field(default=30, ge=0, le=3650)
    """How long ticks stay in the ledger, in days: a month to answer "did it run that night?"."""

    audit_retention_days: float = Field(default=365, ge=0, le=3650)
    """How long it is known who paused, retried, cancelled or deleted what, in days: a year, as reviews ask for it."""

    @field_validator("api_port", "metrics_port", mode="before")
    @classmethod
    def _refuse_service_link(cls, value: object) -> object:
        return rules.refuse_service_link(value)

    @field_validator("database_url", "listen_database_url")
    @classmethod
    def _check_database_url(cls, value: str | None) -> str | None:
        return value if value is None else rules.checked_database_url(value)

    @field_validator("app")
    @classmethod
    def _check_app(cls, value: str | None) -> str | None:
        return value if value is None else rules.checked_app(value)

    @field_validator("worker_queues", mode="before")
    @classmethod
    def _split_queues(cls, value: object) -> object:
        return rules.split_queues(value)

    @model_validator(mode="after")
    def _check_together(self) -> "Settings":
        problems = [
            *rules.port_problems(self.api_port, metrics_port=self.metrics_port),
            *rules.rescue_problems(self.rescue_after_seconds, heartbeat_seconds=self.heartbeat_seconds),
            *rules.lease_problems(
                self.lease_duration_seconds,
                renew_deadline_seconds=self.renew_deadline_seconds,
                retry_period_seconds=self.retry_period_seconds,
            ),
        ]
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def lease_name_for(self, app_name: str) -> str:
        """Return the lease's name: the one set, or `sweephand-<app_name>`."""
        return self.lease_name or f"sweephand-{app_name}"
