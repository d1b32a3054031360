"""Send what nobody caught through the log, so that it has the log's form too."""

import sys
import threading
from types import TracebackType

import structlog


def log_uncaught_exceptions() -> None:
    """Log the exception that ends the process or one of its threads, instead of printing it."""
    sys.excepthook = _log_process_failure
    threading.excepthook = _log_thread_failure


def _log_process_failure(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    structlog.get_logger().critical("process_failed", exc_info=(kind, error, traceback))


def _log_thread_failure(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is None or issubclass(failure.exc_type, SystemExit):
        return
    name = failure.thread.name if failure.thread is not None else None
    exc_info = (failure.exc_type, failure.exc_value, failure.exc_traceback)
    structlog.get_logger().error("thread_failed", thread=name, exc_info=exc_info)
