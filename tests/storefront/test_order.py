"""What may be said of an order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storefront.domain.errors import InvalidFieldError
from storefront.domain.order import OrderDraft
from storefront.domain.product import ProductId

printable_text = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="@"), min_size=1, max_size=126)


def draft(*, quantity: int = 1, email: str = "ada@example.com") -> OrderDraft:
    return OrderDraft(product_id=ProductId(3), quantity=quantity, email=email)


@given(quantity=st.integers(min_value=1, max_value=1000), local_part=printable_text, domain=printable_text)
def test_a_draft_keeps_what_was_said(quantity: int, local_part: str, domain: str) -> None:
    said = draft(quantity=quantity, email=f"{local_part}@{domain}")

    assert (said.product_id, said.quantity, said.email) == (3, quantity, f"{local_part}@{domain}")


@pytest.mark.parametrize("quantity", [0, -1, 1001, 2**63])
def test_a_quantity_that_nobody_orders_is_refused(quantity: int) -> None:
    with pytest.raises(InvalidFieldError, match="quantity must be from 1 to 1000"):
        draft(quantity=quantity)


@pytest.mark.parametrize("email", ["", "ada", "@", "ada@", "@example.com", "ada@@example.com", "ada@eve@example.com"])
def test_an_address_without_something_on_both_sides_of_one_at_is_refused(email: str) -> None:
    with pytest.raises(InvalidFieldError, match="email must have something on both sides of one @"):
        draft(email=email)


@pytest.mark.parametrize(
    "character", [" ", "\t", "\n", "\r", "\r\nBcc: ", "\v", "\x01", "\x1b", "\x7f", "\x85", "\xa0", "\u2028", "\u2029", "\u3000"]
)
@pytest.mark.parametrize("form", ["{}ada@example.com", "a{}da@example.com", "ada@exam{}ple.com", "ada@example.com{}"])
def test_an_address_cannot_begin_another_header(form: str, character: str) -> None:
    with pytest.raises(InvalidFieldError, match="email must not contain whitespace or control characters"):
        draft(email=form.format(character))


@pytest.mark.parametrize("email", ["a\0da@example.com", "ada\ud800@example.com", "ada@example.com\udfff"])
def test_an_address_that_cannot_be_stored_is_refused(email: str) -> None:
    with pytest.raises(InvalidFieldError, match="email must not contain"):
        draft(email=email)


def test_an_address_has_at_most_254_characters() -> None:
    longest = "a" * 242 + "@example.com"

    assert draft(email=longest).email == longest
    with pytest.raises(InvalidFieldError, match="email must have at most 254 characters, not 255"):
        draft(email="a" + longest)
