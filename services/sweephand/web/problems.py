"""Answer every HTTP error as application/problem+json (RFC 9457), in any FastAPI application.

    api = FastAPI()
    install_problem_handlers(api)   # before the routes, so that the OpenAPI document shows the problem

Every problem has `type`, `title`, `status`, `detail`, `instance` and `errors`, a list of `{"field", "message"}`.
"""

from collections.abc import Mapping, Sequence
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sweephand.model.errors import (
    ArgumentsError,
    ConflictError,
    DatabaseError,
    NotFoundError,
    NotMigratedError,
    SweephandError,
)
from sweephand.web.body_limit import MAX_BODY_BYTES, BodyLimit
from sweephand.web.unexpected import UnexpectedErrors

MEDIA_TYPE = "application/problem+json"

# A body may hold thousands of wrong items; whoever sent it mends the first ones first.
_MAX_ERRORS = 50
_STATUS_OF_ERROR: Mapping[type[SweephandError], HTTPStatus] = {
    NotFoundError: HTTPStatus.NOT_FOUND,
    ConflictError: HTTPStatus.CONFLICT,
    ArgumentsError: HTTPStatus.UNPROCESSABLE_ENTITY,
    DatabaseError: HTTPStatus.SERVICE_UNAVAILABLE,
    NotMigratedError: HTTPStatus.SERVICE_UNAVAILABLE,
}


class FieldError(BaseModel):
    """One field that is wrong."""

    field: str = Field(examples=["body.price_cents"])
    """Where: `body.`, `path.`, `query.` or `header.` and the name, or `body` for the body as a whole."""

    message: str = Field(examples=["Input should be greater than or equal to 0"])
    """What is wrong with it."""


class Problem(BaseModel):
    """An error as RFC 9457 has it, with the fields that are wrong."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldError] = []


def install_problem_handlers(api: FastAPI, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
    """Make an application answer all of its errors as problems and refuse bodies over `max_body_bytes` with 413.

    Errors of sweephand keep their meaning (not found 404, conflict 409, wrong arguments 422, database 503). Anything
    unexpected is a 500 that tells nothing of the inside; it is logged once, with its traceback.
    """
    api.router.responses = {"4XX": _documented("What was wrong with the request."), **api.router.responses}
    api.add_exception_handler(HTTPException, _answer_http_exception)
    api.add_exception_handler(RequestValidationError, _answer_validation_error)
    for error in _STATUS_OF_ERROR:
        api.add_exception_handler(error, _answer_own_error)
    # The last one added is the outermost.
    api.add_middleware(BodyLimit, max_body_bytes=max_body_bytes, answer=answer_problem)
    api.add_middleware(UnexpectedErrors, answer=answer_problem)


def problem_response(
    status: int,
    *,
    detail: str,
    instance: str,
    errors: Sequence[FieldError] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem as a response; `instance` is the request's path."""
    problem = Problem(title=_title(status), status=status, detail=detail, instance=instance, errors=list(errors))
    return JSONResponse(problem.model_dump(), status_code=status, headers=headers, media_type=MEDIA_TYPE)


def answer_problem(path: str, status: int, detail: str) -> Response:
    """Return a problem without fields, for the middlewares."""
    return problem_response(status, detail=detail, instance=path)


async def _answer_http_exception(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    if error.status_code in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED} or error.status_code < HTTPStatus.OK:
        return Response(status_code=error.status_code, headers=error.headers)
    detail = _detail(request, error=error)
    return problem_response(error.status_code, detail=detail, instance=request.url.path, headers=error.headers)


async def _answer_validation_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    found = error.errors()
    fields = [_field_error(detail) for detail in found[:_MAX_ERRORS]]
    is_not_json = any(detail.get("type") == "json_invalid" for detail in found)
    status = HTTPStatus.BAD_REQUEST if is_not_json else HTTPStatus.UNPROCESSABLE_ENTITY
    count = f"{len(found)} fields are wrong; the first: " if len(found) > 1 else ""
    detail = f"{count}{fields[0].field}: {fields[0].message}" if fields else "the request is not valid"
    return problem_response(status, detail=detail, instance=request.url.path, errors=fields)


async def _answer_own_error(request: Request, error: Exception) -> Response:
    status = next(
        (status for kind, status in _STATUS_OF_ERROR.items() if isinstance(error, kind)),
        HTTPStatus.INTERNAL_SERVER_ERROR,
    )
    headers = {"Retry-After": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    # What the database said may name hosts and users; that is for the log and not for a client.
    detail = "the database is not available; try again" if headers else str(error)
    return problem_response(status, detail=detail, instance=request.url.path, headers=headers)


def _detail(request: Request, *, error: HTTPException) -> str:
    phrase = _title(error.status_code)
    if error.detail and error.detail != phrase:
        return str(error.detail)
    match error.status_code:
        case HTTPStatus.NOT_FOUND:
            return f"there is nothing at {request.url.path}"
        case HTTPStatus.METHOD_NOT_ALLOWED:
            return f"{request.url.path} does not take {request.method}"
        case _:
            return phrase


def _field_error(detail: Mapping[str, object]) -> FieldError:
    location = detail.get("loc")
    parts = [str(part) for part in location] if isinstance(location, list | tuple) else ["body"]
    message = str(detail.get("msg", "is not valid")).removeprefix("Value error, ")
    if detail.get("type") == "json_invalid":
        context = detail.get("ctx")
        reason = context.get("error", "") if isinstance(context, Mapping) else ""
        position = f" at character {parts[1]}" if len(parts) > 1 else ""
        return FieldError(field="body", message=f"is not JSON: {reason}{position}")
    return FieldError(field=".".join(parts)[:200], message=message)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def _documented(description: str) -> dict[str, object]:
    schema = Problem.model_json_schema()
    # A reference inside of the schema would point into the OpenAPI document, where it leads nowhere.
    schema["properties"]["errors"]["items"] = schema.pop("$defs")["FieldError"]
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}
