import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.worker.failures import error_text, storable, traceback_text


@given(st.text(st.characters(exclude_categories=[])), st.integers(100, 5_000))
def test_whatever_text_there_is_can_be_stored_and_is_bounded(text: str, limit: int) -> None:
    stored = storable(text, limit=limit)

    assert "\0" not in stored
    stored.encode("utf-8")
    # An escape is at most six characters for one.
    assert len(stored) <= 6 * limit


def test_of_a_long_text_the_beginning_and_the_end_are_kept() -> None:
    stored = storable("a" * 1_000 + "b" * 1_000, limit=100)

    assert len(stored) == 100
    assert stored.startswith("a" * 25 + "\n… cut …\n")
    assert stored.endswith("b" * 60)


def test_an_error_is_named_with_its_text() -> None:
    assert error_text(ValueError("no stock")) == "ValueError: no stock"
    assert error_text(KeyError()) == "KeyError"


def test_an_endless_recursion_has_a_bounded_traceback() -> None:
    def recurse(depth: int) -> int:
        return recurse(depth + 1) + 1

    with pytest.raises(RecursionError) as raised:
        recurse(0)
    text = traceback_text(raised.value, skip_frames=1)

    assert "RecursionError" in text
    assert len(text) <= 65_536
