"""Run the benchmarks and print their figures: `python -m tests.bench [dispatch] [enqueue] [dispatcher] [lag] [scale] [peers]`."""

import argparse
import sys
from collections.abc import Callable, Mapping

from sweephand.postgres.embedded import database_url_or_embedded
from tests.bench import dispatch, dispatcher, enqueue, lag, peers, scale
from tests.bench.figures import Figure, table

_SERVER_SETTINGS = {"shared_buffers": "512MB", "max_connections": "200", "shared_preload_libraries": "pg_stat_statements"}
_BENCHMARKS: Mapping[str, Callable[[str], list[Figure]]] = {
    "dispatch": dispatch.measure,
    "enqueue": enqueue.measure,
    "dispatcher": dispatcher.measure,
    "lag": lag.measure,
    "scale": scale.measure,
}


def main() -> int:
    """Run what was asked for, or everything; return 1 if a figure misses its bound."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("names", nargs="*", choices=[*_BENCHMARKS, "peers", []], help="all but peers unless named")
    chosen = parser.parse_args().names or list(_BENCHMARKS)
    figures: list[Figure] = []
    with database_url_or_embedded(is_durable=True, settings=_SERVER_SETTINGS) as server_url:
        for name in chosen:
            sys.stderr.write(f"measuring {name} …\n")
            if name == "peers":
                sys.stdout.write(peers.compare(server_url))
            else:
                figures += _BENCHMARKS[name](server_url)
    if figures:
        sys.stdout.write(table(figures))
    return 0 if all(figure.is_within for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
