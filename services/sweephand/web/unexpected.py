"""Catch what an application did not expect: log it once, answer without leaking it."""

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sweephand.web.body_limit import AnswerProblem


class UnexpectedErrors:
    """An ASGI middleware that turns an unhandled exception into a 500.

    Instead of a handler for Exception, because Starlette raises such an exception again after the answer and the
    server then logs it a second time.
    """

    def __init__(self, app: ASGIApp, *, answer: AnswerProblem) -> None:
        self._app = app
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and answer for it if it raises."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def send_noticed(message: Message) -> None:
            nonlocal has_started
            has_started = has_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_noticed)
        except Exception:
            if has_started:
                # Too late for another answer: the server logs it and cuts the connection.
                raise
            structlog.get_logger().exception("request_failed", method=scope["method"], path=scope["path"])
            response = self._answer(scope["path"], 500, "something went wrong on the server; it is in its log")
            await response(scope, receive, send)
