"""What every command of a process does first: settings, logs, application."""

import os
from collections.abc import Mapping

import click
import structlog

from sweephand.app import App
from sweephand.cli.failures import log_uncaught_exceptions
from sweephand.loading import load_app
from sweephand.settings import Settings, load_settings, misspelt_variables
from sweephand.telemetry import configure_logging

NO_APP = "no application; give --app module:attribute or set SWEEPHAND_APP"


def read_settings(app_target: str | None, *, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings, with logs configured as they say and near misses among the variables warned of.

    Raises:
        SettingsError: Something is wrong with them.
    """
    settings = load_settings(app=app_target)
    configure_logging(settings)
    log_uncaught_exceptions()
    for found, meant in misspelt_variables(environment).items():
        structlog.get_logger().warning("setting_ignored", variable=found, meant=meant)
    return settings


def load_named_app(settings: Settings) -> App:
    """Return the application that the settings name.

    Raises:
        AppError: It does not load.
        click.UsageError: They name none.
    """
    if settings.app is None:
        raise click.UsageError(NO_APP)
    return load_app(settings.app)
