"""Read a process's settings from its environment, once, or say everything that is wrong with them.

    from sweephand.settings import load_settings
    settings = load_settings()

The command reads the settings and hands them down; nothing below it looks at the environment.
"""

from sweephand.settings.choices import ElectorKind, Environment, LogFormat, LogLevel
from sweephand.settings.fields import Settings
from sweephand.settings.loading import load_settings, misspelt_variables

__all__ = [
    "ElectorKind",
    "Environment",
    "LogFormat",
    "LogLevel",
    "Settings",
    "load_settings",
    "misspelt_variables",
]
