"""The closed sets that a setting may be chosen from."""

from enum import StrEnum


class Environment(StrEnum):
    """Where the process runs: rules that only matter in production are checked there."""

    DEVELOPMENT = "development"
    PRODUCTION = "production"


class LogFormat(StrEnum):
    """How a log line is written: for people, or one JSON object a line for programs."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The least severe level that is written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ElectorKind(StrEnum):
    """Who decides which dispatcher leads."""

    KUBERNETES = "kubernetes"
    POSTGRES = "postgres"
    ALWAYS = "always"
