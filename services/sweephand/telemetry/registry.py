"""Make the registry of a process."""

import platform
from importlib import metadata

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)

from sweephand.settings import Settings


def create_registry(settings: Settings) -> CollectorRegistry:
    """Return a new registry with what every process exports: build, process, platform and garbage collector.

    Of its own and not prometheus_client's global one, so that a process exports what it was made to export.
    """
    # The `_created` series double the size of a scrape and nothing here reads them.
    disable_created_metrics()  # type: ignore[no-untyped-call]  # prometheus_client leaves it unannotated
    registry = CollectorRegistry(auto_describe=True)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("sweephand_build", "The version, the revision it was built from and the Python that runs it.", registry=registry)
    build.info(
        {
            "version": metadata.version("sweephand"),
            "revision": settings.revision,
            "python": platform.python_version(),
        }
    )
    return registry
