import pytest

from tests.support.waiting import until, until_async


def test_the_first_true_value_is_returned() -> None:
    values = iter([0, None, 7])

    assert until(lambda: next(values), deadline_seconds=5, message="a number") == 7


def test_a_deadline_that_passes_fails_with_the_message_and_the_last_value() -> None:
    with pytest.raises(AssertionError, match=r"three jobs done: not within 0\.05 s; the condition was last \[\]"):
        until(list, deadline_seconds=0.05, message="three jobs done")


async def test_awaited_conditions_work_alike() -> None:
    values = iter([False, True])

    async def condition() -> bool:
        return next(values)

    assert await until_async(condition, message="true") is True
