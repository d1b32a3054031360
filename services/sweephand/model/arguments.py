"""Read a job function's parameters, and turn its arguments into JSON and back."""

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from enum import Enum, StrEnum
from json.encoder import encode_basestring
from uuid import UUID

from pydantic import BaseModel, TypeAdapter, ValidationError

from sweephand.model.canonical import INTEGER_BOUND, canonical
from sweephand.model.errors import AppError, ArgumentsError

# One encoder for all: json.dumps makes a new one at each call with such options, for half of an encode's time.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


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
    json_name: str  # with quotes and colon, as it stands before the value

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
        encoded = canonical(value, path=self.name)
        if self.kind is ColumnKind.NUMBER and isinstance(encoded, int):
            return canonical(float(encoded), path=self.name)
        return encoded

    def encode_text(self, value: object) -> str:
        """Return the canonical JSON text.

        Raises:
            ArgumentsError: the value has another type than the parameter, or cannot be stored.
        """
        # Most arguments are plain ids and texts: for these two the shortest way.
        if type(value) is int and self.annotation is int and -INTEGER_BOUND <= value < INTEGER_BOUND:
            return str(value)
        if type(value) is str and self.annotation is str and value.isascii() and "\0" not in value:
            return encode_basestring(value)
        return _JSON.encode(self.encode(value))

    def decode(self, value: object) -> object:
        """Return the Python value of a stored JSON value.

        Raises:
            ArgumentsError: the stored value does not fit the parameter's type.
        """
        if type(value) is self.annotation:
            return value
        try:
            return self.adapter.validate_python(value, by_alias=True, by_name=True)
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
        for name in arguments:
            if name not in self.by_name:
                unknown = arguments.keys() - self.by_name.keys()
                raise ArgumentsError(f"{self.owner} has no parameter {_names(unknown)}; it takes {_names(self.by_name)}")
        encoded: list[str] = []
        for name, parameter in self.by_name.items():
            if name in arguments:
                value = arguments[name]
            elif parameter.has_default:
                value = parameter.default
            else:
                raise ArgumentsError(f"{self.owner} needs the argument {name}; pass {name}=…")
            encoded.append(parameter.json_name + parameter.encode_text(value))
        return f"{{{','.join(encoded)}}}"

    def encode_some(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the canonical JSON values of these arguments alone, without any defaults.

        Raises:
            ArgumentsError: a name is unknown, or a value does not fit.
        """
        unknown = arguments.keys() - self.by_name.keys()
        if unknown:
            raise ArgumentsError(f"{self.owner} has no parameter {_names(unknown)}; it takes {_names(self.by_name)}")
        return {name: self.by_name[name].encode(value) for name, value in arguments.items()}

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
        by_name[name] = _parameter(owner, name, _plain(hints[name]), found.default)
    return Parameters(owner=owner, by_name=by_name)


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
        json_name=f"{encode_basestring(name)}:",
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
    annotation = _plain(annotation)
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    origin = typing.get_origin(annotation)
    if origin in {list, dict} or _is_union(annotation):
        kinds = [_kind(owner, name, member) for member in typing.get_args(annotation)]
        if origin is dict and kinds[0] is not ColumnKind.TEXT:
            raise AppError(f"{owner}: parameter {name} has the type {annotation}; the keys of a JSON object are text, use str")
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


def _plain(annotation: object) -> object:
    """Return the type that a NewType, such as a ProductId, stands for."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    return annotation


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
