"""Read the settings, and put what pydantic says about them into words that name the variable and what is allowed."""

import difflib
import types
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from sweephand.model.errors import SettingsError
from sweephand.settings.fields import Settings

_SECRETS = frozenset({"DATABASE_URL", "SWEEPHAND_LISTEN_DATABASE_URL"})


def load_settings(**overrides: object) -> Settings:
    """Return the settings of this process: `overrides` first, then the environment, then the defaults.

    An override of None counts as not given, so that a command can pass on its options as they come.

    Raises:
        SettingsError: Something is wrong. The message has one line for each problem: the variable, its value
            (never a secret's) and what is allowed.
    """
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks the values; that is what it is called for
    except ValidationError as error:
        lines = [line for detail in error.errors(include_url=False) for line in _lines(detail)]
    # Outside of the except block: pydantic's error carries the values, and a chained traceback would print them.
    raise SettingsError("\n".join(lines))


def misspelt_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the `SWEEPHAND_` variables that are no setting but nearly one, each with the setting it resembles.

    Only near misses: Kubernetes adds variables such as SWEEPHAND_API_SERVICE_HOST on its own.
    """
    known = {variable(name) for name in Settings.model_fields}
    misspelt: dict[str, str] = {}
    for name in sorted(environment):
        if name.startswith("SWEEPHAND_") and name not in known:
            close = difflib.get_close_matches(name, known, n=1, cutoff=0.92)
            misspelt.update({name: close[0]} if close else {})
    return misspelt


def variable(field_name: str) -> str:
    """Return the environment variable that sets a field."""
    return "DATABASE_URL" if field_name == "database_url" else f"SWEEPHAND_{field_name.upper()}"


def _lines(detail: ErrorDetails) -> Iterable[str]:
    if not detail["loc"]:
        return _reason(detail).splitlines()
    location = str(detail["loc"][0])
    name = location if location == "DATABASE_URL" else variable(location)
    if detail["type"] == "missing":
        return [f"{name}: is not set; it must be of the form postgresql://user:password@host:5432/name"]
    shown = name if name in _SECRETS else f"{name}={_shown(detail['input'])}"
    if detail["type"] == "value_error":
        return [f"{shown}: {_reason(detail)}"]
    field = Settings.model_fields["database_url" if location == "DATABASE_URL" else location.lower()]
    return [f"{shown}: must be {_allowed(field)}"]


def _reason(detail: ErrorDetails) -> str:
    return detail["msg"].removeprefix("Value error, ")


def _shown(value: object) -> str:
    text = " ".join(str(value).split())  # a problem is one line, whatever the value
    return text if len(text) <= 80 else f"{text[:77]}..."


def _allowed(field: FieldInfo) -> str:
    """Return what a field takes, in words."""
    kind = _plain(field.annotation)
    bounds = _bounds(field.metadata)
    if kind is bool:
        return "true or false"
    if kind is int:
        return f"a whole number{bounds}"
    if kind is float:
        return f"a number{bounds}"
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        *first, last = (member.value for member in kind)
        return f"{', '.join(first)} or {last}"
    return "text of a permitted length"


def _plain(annotation: object) -> object:
    """Return the type without its `| None`."""
    if get_origin(annotation) in {Union, types.UnionType}:
        return next(kind for kind in get_args(annotation) if kind is not type(None))
    return annotation


def _bounds(metadata: Iterable[object]) -> str:
    lowest = next((bound.ge for bound in metadata if isinstance(bound, Ge)), None)
    highest = next((bound.le for bound in metadata if isinstance(bound, Le)), None)
    return "" if lowest is None or highest is None else f" from {lowest} to {highest}"
