"""What the shop is told from outside."""

from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from sweephand import SettingsError

# What a URL may hold besides is a password, so a wrong one is told its form, and never shown.
FORMS = {"DATABASE_URL": "postgresql://user:password@host:5432/name", "SMTP_URL": "smtp://host:port"}


class Settings(BaseSettings):
    """The shop's settings. Immutable; read once by the composition root. A field's variable is its alias."""

    model_config = SettingsConfigDict(frozen=True, env_ignore_empty=True, hide_input_in_errors=True)

    database_url: str = Field(alias="DATABASE_URL", repr=False, pattern=r"^postgres(ql)?(\+psycopg)?://")
    """The PostgreSQL database, `postgresql://user:password@host:5432/name`, the same one as sweephand's. A secret."""

    warehouse_url: str | None = Field(alias="WAREHOUSE_URL", default=None, pattern=r"^https?://[^/]")
    """The warehouse's base URL. None: a simulated warehouse, so that the shop runs on a machine that has none."""

    warehouse_timeout_seconds: float = Field(alias="WAREHOUSE_TIMEOUT", default=15, gt=0, le=50)
    """How long to wait for the warehouse's next sign of life, in seconds. Below the job's time limit of 60 s."""

    warehouse_min_delay_seconds: float = Field(alias="WAREHOUSE_MIN_DELAY", default=5, ge=0, le=3600)
    """How long the simulated warehouse thinks at least, in seconds. 5 to 10 s is what makes a job of it."""

    warehouse_max_delay_seconds: float = Field(alias="WAREHOUSE_MAX_DELAY", default=10, ge=0, le=3600)
    """How long the simulated warehouse thinks at most, in seconds."""

    warehouse_failure_rate: float = Field(alias="WAREHOUSE_FAILURE_RATE", default=0, ge=0, le=1)
    """The share of calls that fail at the simulated warehouse, from 0 to 1. Raise it to watch retries."""

    smtp_url: str | None = Field(alias="SMTP_URL", default=None, repr=False, pattern=r"^smtp://[^/:@?#\s]+:[0-9]+$")
    """The mail server, `smtp://host:port`; it takes mails without a login. None: mails are simulated by a line in the log."""

    mail_from: str = Field(
        alias="MAIL_FROM", default="shop@example.com", max_length=254, pattern=r"^[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+$"
    )
    """The address that mails come from; its domain is their Message-IDs', too. Set it with SMTP_URL: example.com is nobody's."""

    scan_interval_seconds: float = Field(alias="STUCK_PUBLICATIONS_SCAN_INTERVAL", default=60, ge=1, le=86400)
    """How often stuck publications are looked for, in seconds: a minute, beside the ten minutes of grace."""

    batch_limit: int = Field(alias="STUCK_PUBLICATIONS_BATCH_LIMIT", default=100, ge=1, le=10_000)
    """How many stuck publications one tick enqueues at most; more are left to the next tick."""

    @field_validator("smtp_url")
    @classmethod
    def _check_port(cls, url: str | None) -> str | None:
        if url is not None and not urlsplit(url).port:  # beyond 65535 it raises a ValueError itself
            raise ValueError("has no port from 1 to 65535")
        return url

    @model_validator(mode="after")
    def _check_delays(self) -> "Settings":
        if self.warehouse_min_delay_seconds > self.warehouse_max_delay_seconds:
            raise ValueError(
                f"WAREHOUSE_MIN_DELAY={self.warehouse_min_delay_seconds:g} and "
                f"WAREHOUSE_MAX_DELAY={self.warehouse_max_delay_seconds:g}: the first must not be above the second"
            )
        return self


def load_settings() -> Settings:
    """Return the settings that the environment holds.

    Raises:
        SettingsError: some are wrong; one line for each, with its name, its value and what is allowed.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [_line(detail) for detail in error.errors(include_url=False)]
    # Outside of the except block: pydantic's error carries the values, and a chained traceback would print a secret.
    raise SettingsError("\n".join(lines))


def _line(detail: ErrorDetails) -> str:
    reason = detail["msg"].removeprefix("Value error, ").removeprefix("Input ")
    if not detail["loc"]:
        return reason
    name = str(detail["loc"][0])
    if name in FORMS:
        problem = "is not set; it must be" if detail["type"] == "missing" else "must be"
        return f"{name}: {problem} of the form {FORMS[name]}"
    return f"{name}={detail['input']}: {reason}"
