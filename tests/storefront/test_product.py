"""What may be said of a product."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storefront.domain.errors import InvalidFieldError
from storefront.domain.product import ProductDraft

storable_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    name=storable_text.filter(lambda text: len(text.strip()) >= 1 and len(text) <= 200),
    description=storable_text,
    price_cents=st.integers(min_value=0, max_value=2**63 - 1),
)
def test_a_draft_keeps_what_was_said(name: str, description: str, price_cents: int) -> None:
    draft = ProductDraft(name=name, description=description, price_cents=price_cents)

    assert (draft.name, draft.description, draft.price_cents) == (name, description, price_cents)


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\u2003", "n" * 201, "a\0b", "\ud800", "a\udfff"])
def test_a_name_that_cannot_stand_is_refused(name: str) -> None:
    with pytest.raises(InvalidFieldError) as refusal:
        ProductDraft(name=name, description="", price_cents=1)

    assert refusal.value.field == "name"


@pytest.mark.parametrize("description", ["\0", "\ud83d", "\ude00\ud83d"])
def test_a_description_that_cannot_be_stored_is_refused(description: str) -> None:
    with pytest.raises(InvalidFieldError, match="description must not contain"):
        ProductDraft(name="Lamp", description=description, price_cents=1)


@pytest.mark.parametrize("price_cents", [-1, -(2**63), 2**63, 10**400])
def test_a_price_that_cannot_be_stored_is_refused(price_cents: int) -> None:
    with pytest.raises(InvalidFieldError, match="price_cents must be from 0 to 9223372036854775807"):
        ProductDraft(name="Lamp", description="", price_cents=price_cents)


def test_a_name_of_two_hundred_characters_is_accepted_in_any_script() -> None:
    assert len(ProductDraft(name="🪔" * 200, description="", price_cents=0).name) == 200
