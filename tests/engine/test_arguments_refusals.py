import dataclasses
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from sweephand import App, AppError, ArgumentsError, Job


class Colour(StrEnum):
    RED = "red"


@dataclasses.dataclass(frozen=True)
class Item:
    name: str
    price: float
    bought_at: datetime | None = None


class Order(BaseModel):
    items: list[Item]


@dataclasses.dataclass
class Changeable:
    name: str


def job_of(annotation: object) -> "Job[...]":
    def take(value: object) -> None:
        pass

    take.__annotations__["value"] = annotation
    return App("refusals").job()(take)


NAIVE = datetime(2026, 11, 30, 16, 0)  # noqa: DTZ001 - what is refused


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        (str, "a\0b", "value: a NUL character at 1"),
        (str, "ab\ud800", "value: a lone surrogate at 2"),
        (float, float("nan"), "value: nan cannot be stored"),
        (float, float("inf"), "value: inf cannot be stored"),
        (float, float("-inf"), "value: -inf cannot be stored"),
        (int, 2**63, "value: an integer of 64 bits"),
        (int, -(2**63) - 1, "value: an integer of 64 bits"),
        (float, 10**400, "value"),
        (datetime, NAIVE, "value: 2026-11-30T16:00:00 has no time zone"),
        (datetime, datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))), "outside of the years 1 to 9999"),
        (datetime, datetime.min.replace(tzinfo=timezone(timedelta(hours=1))), "outside of the years 1 to 9999"),
        (list[str], ["fine", "a\0"], r"value\[1\]: a NUL character at 1"),
        (dict[str, list[float]], {"a": [1.0, float("nan")]}, r"value\.a\[1\]: nan"),
        (dict[str, int], {"a\0": 1}, r"value \(key\): a NUL"),
        (Item, Item("Lamp", float("inf")), r"value\.price: inf"),
        (Item, Item("Lamp", 1.5, NAIVE), r"value\.bought_at: 2026-11-30T16:00:00 has no time zone"),
        (Order, Order(items=[Item("Lamp", 1), Item("\udfff", 1)]), r"value\.items\[1\]\.name: a lone surrogate"),
        (int, "7", "value: Input should be a valid integer"),
        (int, True, "value: Input should be a valid integer"),
        (int, 7.0, "value: Input should be a valid integer"),
        (int, None, "value: Input should be a valid integer"),
        (bool, 1, "value: Input should be a valid boolean"),
        (float, "1.5", "value: Input should be a valid number"),
        (str, 7, "value: Input should be a valid string"),
        (UUID, "f0a1", "value: Input should be an instance of UUID"),
        (date, datetime(2026, 11, 30, 16, tzinfo=UTC), "value"),
        (datetime, date(2026, 11, 30), "value"),
        (Colour, "red", "value: Input should be an instance of Colour"),
        (list[int], [1, "2"], r"value\[1\]: Input should be a valid integer"),
        (dict[str, object], {}, "type"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_path(annotation: object, value: object, words: str) -> None:
    with pytest.raises((ArgumentsError, AppError), match=words):
        job_of(annotation).encode({"value": value})


@given(position=st.integers(0, 4), other=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5))
def test_a_nul_is_refused_wherever_it_is(position: int, other: str) -> None:
    texts = [other] * 5
    texts[position] = f"{other}\0"

    with pytest.raises(ArgumentsError, match=rf"value\[{position}\]: a NUL character at {len(other)}"):
        job_of(list[str]).encode({"value": texts})


@pytest.mark.parametrize(
    "annotation",
    [
        Decimal,
        bytes,
        object,
        set[int],
        tuple[int, ...],
        complex,
        timedelta,
        Changeable,
        dict[int, str],
        dict[UUID, str],
        Callable,
    ],
    ids=str,
)
def test_a_parameter_type_that_json_cannot_carry_is_refused_at_registration(annotation: object) -> None:
    with pytest.raises(AppError, match=r"test_arguments_refusals\.py:\d+: job take: parameter value"):
        job_of(annotation)


def test_missing_and_unknown_names_are_told() -> None:
    @App("refusals").job()
    def greet(name: str, times: int = 1) -> None:
        pass

    with pytest.raises(ArgumentsError, match="needs the argument name; pass name="):
        greet.encode({})
    with pytest.raises(ArgumentsError, match="no parameter nam; it takes name, times"):
        greet.encode({"nam": "Ada"})
    with pytest.raises(ArgumentsError, match="needs the argument name, and the stored job has none"):
        greet.decode({})
    with pytest.raises(ArgumentsError, match="no parameter title"):
        greet.decode({"name": "Ada", "title": "Countess"})


@pytest.mark.parametrize(
    ("annotation", "stored", "words"),
    [
        (int, "seven", "value: Input should be a valid integer"),
        (UUID, "f0a1", "value: Input should be a valid UUID"),
        (Colour, "green", "value: Input should be 'red'"),
        (datetime, "yesterday", "value: Input should be a valid datetime"),
        (list[int], {"a": 1}, "value: Input should be a valid list"),
    ],
)
def test_stored_values_that_no_longer_fit_are_told(annotation: object, stored: object, words: str) -> None:
    with pytest.raises(ArgumentsError, match=words):
        job_of(annotation).decode({"value": json.loads(json.dumps(stored))})
