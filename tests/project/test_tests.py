"""What a test may not do, since others run beside it on the same server."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
_NEAR = 200


def test_backends_are_those_of_the_tests_own_database() -> None:
    """Whoever waits, sleeps or is ended by name alone may be another test's."""
    careless = [
        f"{path.relative_to(TESTS)}: {part[:60]!r}"
        for path in sorted(TESTS.rglob("*.py"))
        for part in path.read_text(encoding="utf-8").split("FROM pg_stat_" + "activity")[1:]
        if "datname" not in part[:_NEAR]
    ]

    assert careless == []
