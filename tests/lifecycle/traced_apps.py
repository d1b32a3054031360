"""An application that traces: every span that ends is a line of JSON in the file that SPANS names."""

import os
from datetime import timedelta
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from sweephand import App, Snooze

app = App("traced_tests")


def _line(span: ReadableSpan) -> str:
    return f"{span.to_json(indent=None)}\n"


def create_app() -> App:
    """Return the application, traced."""
    provider = TracerProvider()
    spans = Path(os.environ["SPANS"]).open("a", encoding="utf-8")  # noqa: SIM115 - open as long as the process is
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=spans, formatter=_line)))
    trace.set_tracer_provider(provider)
    return app


@app.job(unique=None)
def work(n: int) -> None:
    """Make a span of its own."""
    with trace.get_tracer("application").start_as_current_span(f"step {n}"):
        pass


@app.job(unique=None)
async def work_async(n: int) -> None:
    """Make a span of its own on the event loop."""
    with trace.get_tracer("application").start_as_current_span(f"step {n}"):
        pass


@app.job(unique=None)
def fail(n: int) -> None:
    """Fail."""
    raise ValueError(f"step {n}")


@app.job(unique=None)
def snooze(n: int) -> None:
    """Sleep."""
    raise Snooze(timedelta(hours=n))
