"""Carry OpenTelemetry's trace from the code that enqueues a job to the attempts that run it.

Nothing of OpenTelemetry is imported here before the application itself has done so, and nothing is traced without a tracer
provider of the application's.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sweephand.model.outcomes import JobSignal

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from sweephand.context import JobContext


def trace_context() -> str | None:
    """Return the active span as JSON text to be stored with a job, in the propagators' form; None if no span is active."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import propagate, trace

    if not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return json.dumps(carrier) if carrier else None


def attempt_tracer() -> "Tracer | None":
    """Return what makes the attempts' spans; None if the application has set no tracer provider by now."""
    if "opentelemetry.trace" not in sys.modules:
        return None
    from opentelemetry import trace

    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None
    return trace.get_tracer("sweephand")


@contextmanager
def attempt_span(tracer: "Tracer", job: "JobContext", *, enqueued_in: str | None) -> Iterator[None]:
    """Make a span of the block, a child of the span that enqueued the job. What the block raises marks it as failed.

    `enqueued_in` is what `trace_context` returned then. A signal such as Snooze is no failure.
    """
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind, StatusCode

    attributes: dict[str, str | int] = {
        "messaging.system": "sweephand",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": str(job.job_id),
        "sweephand.attempt": job.attempt,
    }
    if job.tick_id is not None:
        attributes["sweephand.tick_id"] = job.tick_id
    with tracer.start_as_current_span(
        job.kind,
        context=propagate.extract(_carrier(enqueued_in)),
        kind=SpanKind.CONSUMER,
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield
        except JobSignal as signal:
            span.set_attribute("sweephand.signal", type(signal).__name__)
            raise
        except BaseException as error:
            span.record_exception(error)
            span.set_status(StatusCode.ERROR, type(error).__name__)
            raise


def _carrier(stored: str | None) -> dict[str, str]:
    found = {} if stored is None else json.loads(stored)
    return {str(key): str(value) for key, value in found.items()} if isinstance(found, dict) else {}
