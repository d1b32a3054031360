import dataclasses
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from enum import Enum, IntEnum, StrEnum
from typing import Literal, NewType
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, RootModel

from sweephand import App, Job

app = App("arguments")

ProductId = NewType("ProductId", int)


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Shape(Enum):
    ROUND = "round"
    SQUARE = 4


@dataclasses.dataclass(frozen=True)
class Size:
    width: int
    name: str
    made_on: date | None = None


class Address(BaseModel):
    model_config = ConfigDict(frozen=True)

    street: str
    zip_code: str = Field(alias="zipCode")
    size: Size


class Tags(RootModel[list[str]]):
    pass


@app.job()
def everything(
    flag: bool,  # noqa: FBT001 - a job has named parameters only
    number: int,
    product_id: ProductId,
    weight: float,
    text: str,
    key: UUID,
    day: date,
    moment: datetime,
    colour: Colour,
    level: Level,
    shape: Shape,
    side: Literal["left", "right"],
    size: Size,
    address: Address,
    tags: Tags,
    numbers: list[int],
    weights: dict[str, float],
    sizes: list[Size],
    anything: dict[str, int | float | str | bool | list[int] | None],
    maybe: int | None,
    maybe_moment: datetime | None,
    by_colour: dict[Colour, int],
) -> None:
    pass


storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
moments = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 - hypothesis adds the time zone
    datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
sizes = st.builds(Size, integers, storable, st.none() | st.dates())
addresses = st.builds(lambda street, code, size: Address(street=street, zipCode=code, size=size), storable, storable, sizes)
values = st.fixed_dictionaries(
    {
        "flag": st.booleans(),
        "number": integers,
        "product_id": integers.map(ProductId),
        "weight": floats,
        "text": storable,
        "key": st.uuids(),
        "day": st.dates(),
        "moment": moments,
        "colour": st.sampled_from(Colour),
        "level": st.sampled_from(Level),
        "shape": st.sampled_from(Shape),
        "side": st.sampled_from(["left", "right"]),
        "size": sizes,
        "address": addresses,
        "tags": st.lists(storable, max_size=3).map(Tags),
        "numbers": st.lists(integers, max_size=3),
        "weights": st.dictionaries(storable, floats, max_size=3),
        "sizes": st.lists(sizes, max_size=3),
        "anything": st.dictionaries(
            storable, integers | storable | st.booleans() | st.lists(integers, max_size=2) | st.none(), max_size=3
        ),
        "maybe": st.none() | integers,
        "maybe_moment": st.none() | moments,
        "by_colour": st.dictionaries(st.sampled_from(Colour), integers),
    }
)


@given(given_values=values)
def test_every_type_comes_back_as_it_was_given(given_values: dict[str, object]) -> None:
    stored = json.loads(everything.encode(given_values))

    assert everything.decode(stored) == given_values


@given(given_values=values)
def test_what_comes_back_is_written_as_it_was_before(given_values: dict[str, object]) -> None:
    once = everything.encode(given_values)

    assert everything.encode(everything.decode(json.loads(once))) == once


@given(moment=moments)
def test_one_moment_is_written_alike_from_every_time_zone(moment: datetime) -> None:
    @App("other").job()
    def at(moment: datetime) -> None:
        pass

    assert at.encode({"moment": moment}) == at.encode({"moment": moment.astimezone(UTC)})


@given(whole=st.integers(-(10**16), 10**16))
def test_a_whole_float_is_written_as_the_integer_that_it_equals(whole: int) -> None:
    weigh = weighing()

    assert weigh.encode({"weight": float(whole)}) == weigh.encode({"weight": whole})
    assert "." not in weigh.encode({"weight": float(whole)})


@given(weight=floats)
def test_a_float_keeps_its_exact_value(weight: float) -> None:
    weigh = weighing()

    decoded = weigh.decode(json.loads(weigh.encode({"weight": weight})))["weight"]

    assert isinstance(decoded, float)
    assert decoded == weight
    assert math.copysign(1, decoded) == 1 or decoded != 0  # minus nought is nought


def weighing() -> Job[[float]]:
    @App("other").job()
    def weigh(weight: float) -> None:
        pass

    return weigh


def test_defaults_are_written_too_so_that_equal_calls_are_equal() -> None:
    @App("other").job()
    def greet(name: str, times: int = 1, colour: Colour = Colour.RED) -> None:
        pass

    assert greet.encode({"name": "Ada"}) == greet.encode({"name": "Ada", "times": 1, "colour": Colour.RED})


def test_a_default_stands_for_an_argument_that_older_jobs_lack() -> None:
    @App("other").job()
    def greet(name: str, times: int = 1) -> None:
        pass

    assert greet.decode({"name": "Ada"}) == {"name": "Ada"}
