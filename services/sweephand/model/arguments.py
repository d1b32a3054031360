"""Read a job function's parameters, and turn its arguments into JSON and back.

What counts as equal arguments decides which jobs are duplicates, so one value has one JSON form: whole floats are written
as integers, datetimes as UTC with six fractional digits, object keys in the order that jsonb gives them.
"""

import dataclasses
import inspect
import json
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import Enum, StrEnum
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from sweephand.model.errors import AppError, ArgumentsError

INTEGER_BOUND = 2**63


class ColumnKind(StrEnum):
    """Say how a sweep's column becomes a job's argument; postgres/dispatch.py has the SQL for each."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    UUID = "uuid"
    DATE = "date"
    TIMESTAMP = "timestamp"
    JSON = "json"


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """Describe one parameter of a job: its type, whether None and absence are allowed, and its place in SQL."""

    name: str
    annotation: object
    kind: ColumnKind
    is_nullable: bool
    choices: tuple[str | int, ...] | None
    has_default: bool
    default: object
    adapter: TypeAdapter[object]

    def encode(self, value: object) -> object:
        """Return the canonical JSON value.

        Raises:
            ArgumentsError: the value has another type than the parameter, or cannot be stored.
        """
        if type(value) is not self.annotation:
            try:
                self.adapter.validate_python(value, strict=True)
            except ValidationError as error:
                raise ArgumentsError(_first_problem(self.name, error)) from error
        return canonical(value, path=self.name)

    def decode(self, value: object) -> object:
        """Return the Python value of a stored JSON value.

        Raises:
            ArgumentsError: the stored value does not fit the parameter's type.
        """
        if type(value) is self.annotation:
            return value
        try:
            return self.adapter.validate_python(value)
        except ValidationError as error:
            raise ArgumentsError(_first_problem(self.name, error)) from error


@dataclasses.dataclass(frozen=True, slots=True)
class Parameters:
    """Hold the parameters of one job function, by name, in the order of its signature."""

    owner: str
    by_name: Mapping[str, Parameter]

    def encode(self, arguments: Mapping[str, object]) -> str:
        """Return the arguments as JSON text, defaults filled in.

        Raises:
            ArgumentsError: a name is missing or unknown, or a value does not fit; the message has the path.
        """
        unknown = arguments.keys() - self.by_name.keys()
        if unknown:
            raise ArgumentsError(f"{self.owner} has no parameter {_names(unknown)}; it takes {_names(self.by_name)}")
        encoded: dict[str, object] = {}
        for name, parameter in self.by_name.items():
            if name in arguments:
                encoded[name] = parameter.encode(arguments[name])
            elif parameter.has_default:
                encoded[name] = parameter.encode(parameter.default)
            else:
                raise ArgumentsError(f"{self.owner} needs the argument {name}; pass {name}=…")
        return json.dumps(encoded, ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    def decode(self, stored: Mapping[str, object]) -> dict[str, object]:
        """Return keyword arguments for the function; a stored name that it no longer takes is an error.

        Raises:
            ArgumentsError: the stored arguments do not fit the parameters.
        """
        unknown = stored.keys() - self.by_name.keys()
        if unknown:
            raise ArgumentsError(f"{self.owner} has no parameter {_names(unknown)} (any more); it takes {_names(self.by_name)}")
        decoded: dict[str, object] = {}
        for name, parameter in self.by_name.items():
            if name in stored:
                decoded[name] = parameter.decode(stored[name])
            elif not parameter.has_default:
                raise ArgumentsError(f"{self.owner} needs the argument {name}, and the stored job has none")
        return decoded


def parameters_of(function: Callable[..., object], *, owner: str) -> Parameters:
    """Read the parameters of `function`.

    Raises:
        AppError: a parameter has no type, or one that JSON cannot carry, or is variadic or positional only.
    """
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError) as error:
        raise AppError(f"{owner}: its type hints cannot be read ({error}); import the types at module level") from error
    by_name: dict[str, Parameter] = {}
    for name, found in inspect.signature(function).parameters.items():
        if found.kind in {found.VAR_POSITIONAL, found.VAR_KEYWORD, found.POSITIONAL_ONLY}:
            raise AppError(f"{owner}: parameter {name} is variadic or positional only; a job takes named parameters")
        if name not in hints:
            raise AppError(f"{owner}: parameter {name} has no type; write {name}: int, or another JSON type")
        by_name[name] = _parameter(owner, name, hints[name], found.default)
    return Parameters(owner=owner, by_name=by_name)


def canonical(value: object, *, path: str) -> object:
    """Return the one JSON form of `value`.

    Raises:
        ArgumentsError: NaN, an infinity, an integer beyond 64 bits, NUL or a lone surrogate in a text, a naive datetime or
            a type that JSON cannot carry; the message starts with the path of the value.
    """
    match value:
        case None | bool():
            return value
        case Enum():
            return canonical(value.value, path=path)
        case int() | float() | str() | UUID() | date():
            return _canonical_scalar(value, path)
        case BaseModel():
            return canonical(dict(value), path=path)
        case Mapping():
            return {_key(key, path): canonical(item, path=f"{path}.{key}") for key, item in value.items()}
        case list() | tuple():
            return [canonical(item, path=f"{path}[{index}]") for index, item in enumerate(value)]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return canonical(fields, path=path)
        case _:
            raise ArgumentsError(f"{path}: {type(value).__name__} is no JSON type; pass its id or a plain value")


def _canonical_scalar(value: int | float | str | UUID | date, path: str) -> int | float | str:  # noqa: PYI041 (match needs both)
    match value:
        case int():
            if not -INTEGER_BOUND <= value < INTEGER_BOUND:
                raise ArgumentsError(f"{path}: an integer of {value.bit_length()} bits; 64 bits with sign is the most")
            return int(value)
        case float():
            return _canonical_float(value, path)
        case str():
            return _storable_text(value, path)
        case UUID():
            return str(value)
        case datetime():
            if value.utcoffset() is None:
                raise ArgumentsError(f"{path}: {value.isoformat()} has no time zone; pass an aware datetime")
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case date():
            return value.isoformat()


def _canonical_float(value: float, path: str) -> int | float:
    if not math.isfinite(value):
        raise ArgumentsError(f"{path}: {value} cannot be stored as JSON; pass None or a finite number")
    return int(value) if value.is_integer() and abs(value) < INTEGER_BOUND else value


def _storable_text(value: str, path: str) -> str:
    if "\0" in value:
        raise ArgumentsError(f"{path}: a NUL character at {value.index(chr(0))}; PostgreSQL cannot store it, remove it")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ArgumentsError(f"{path}: a lone surrogate at {error.start}; decode the text properly first") from error
    return value


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise ArgumentsError(f"{path}: the key {key!r} is no text; JSON objects have text keys only")
    return _storable_text(key, f"{path} (key)")


def _parameter(owner: str, name: str, annotation: object, default: object) -> Parameter:
    members = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    kinds = {_kind(owner, name, member) for member in members if member is not types.NoneType}
    has_default = default is not inspect.Parameter.empty
    return Parameter(
        name=name,
        annotation=annotation,
        kind=kinds.pop() if len(kinds) == 1 else ColumnKind.JSON,
        is_nullable=types.NoneType in members,
        choices=_choices(members),
        has_default=has_default,
        default=default if has_default else None,
        adapter=_adapter(annotation),
    )


def _adapter(annotation: object) -> TypeAdapter[object]:
    return TypeAdapter(annotation)  # type: ignore[arg-type]  # a type known only at run time


_SCALARS: Mapping[object, ColumnKind] = types.MappingProxyType(
    {
        bool: ColumnKind.BOOLEAN,
        int: ColumnKind.INTEGER,
        float: ColumnKind.NUMBER,
        str: ColumnKind.TEXT,
        UUID: ColumnKind.UUID,
        date: ColumnKind.DATE,
        datetime: ColumnKind.TIMESTAMP,
        dict: ColumnKind.JSON,
        list: ColumnKind.JSON,
        types.NoneType: ColumnKind.JSON,
    }
)


def _kind(owner: str, name: str, annotation: object) -> ColumnKind:
    """Return the kind of a type, having walked its members; raises AppError for what JSON cannot carry."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin = typing.get_origin(annotation)
    if origin in {list, dict} or _is_union(annotation):
        for member in typing.get_args(annotation):
            _kind(owner, name, member)
        return ColumnKind.JSON
    if origin is typing.Literal:
        return _kind_of_values(typing.get_args(annotation))
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return _kind_of_values([member.value for member in annotation])
        if issubclass(annotation, BaseModel):
            return ColumnKind.JSON
        if dataclasses.is_dataclass(annotation):
            if not annotation.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # CPython keeps it there; not in typeshed
                raise AppError(f"{owner}: parameter {name}: {annotation.__name__} is not frozen; use @dataclass(frozen=True)")
            return ColumnKind.JSON
    raise AppError(
        f"{owner}: parameter {name} has the type {annotation}; jobs take JSON types, UUID, date, datetime, Enum, "
        "frozen dataclasses or pydantic models: pass an id and load the rest inside the job"
    )


def _kind_of_values(values: Sequence[object]) -> ColumnKind:
    if all(isinstance(value, str) for value in values):
        return ColumnKind.TEXT
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return ColumnKind.INTEGER
    return ColumnKind.JSON


def _choices(members: Sequence[object]) -> tuple[str | int, ...] | None:
    named = [member for member in members if member is not types.NoneType]
    if len(named) != 1:
        return None
    values: list[object] = []
    if typing.get_origin(named[0]) is typing.Literal:
        values = list(typing.get_args(named[0]))
    elif isinstance(named[0], type) and issubclass(named[0], Enum):
        values = [member.value for member in named[0]]
    plain = tuple(value for value in values if isinstance(value, str | int) and not isinstance(value, bool))
    return plain if plain and len(plain) == len(values) else None


def _is_union(annotation: object) -> bool:
    return typing.get_origin(annotation) in {typing.Union, types.UnionType}


def _first_problem(name: str, error: ValidationError) -> str:
    problem = error.errors(include_url=False, include_input=False)[0]
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"])
    return f"{name}{path}: {problem['msg']}"


def _names(names: "Mapping[str, object] | set[str]") -> str:
    return ", ".join(sorted(names)) or "nothing"
