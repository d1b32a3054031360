"""Refuse request bodies that are too large, before and while they are read."""

from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 1_048_576

AnswerProblem = Callable[[str, int, str], Response]
"""Makes the response of a path, a status and what to say about it."""

_TOO_LARGE = 413


class BodyLimit:
    """An ASGI middleware that answers 413 when a body is longer than a limit.

    A declared length is refused unread. A body sent in chunks is counted, and refused when it passes the limit.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, answer: AnswerProblem) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless its body is too large."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        detail = f"the body is larger than {self._max_body_bytes} bytes; send less"
        too_large = self._answer(scope["path"], _TOO_LARGE, detail)
        if _declared_bytes(scope) > self._max_body_bytes:
            await too_large(scope, receive, send)
            return
        has_started = False
        received_bytes = 0

        async def receive_counted() -> Message:
            nonlocal received_bytes
            message = await receive()
            if message["type"] == "http.request":
                received_bytes += len(message.get("body", b""))
                if received_bytes > self._max_body_bytes:
                    # FastAPI lets this one through where it turns other errors of reading into a 400.
                    raise HTTPException(_TOO_LARGE, detail)
            return message

        async def send_noticed(message: Message) -> None:
            nonlocal has_started
            has_started = has_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive_counted, send_noticed)
        except HTTPException as error:
            if has_started or error.status_code != _TOO_LARGE:
                raise
            await too_large(scope, receive, send)


def _declared_bytes(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            # int() refuses more than 4,300 digits, and such a length is too large in any case.
            return int(value[:20]) if len(value) <= 20 else 10**20
    return 0
