"""What a product is, and what may be said of one."""

from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from storefront.domain.errors import InvalidFieldError
from storefront.domain.text import check_text

ProductId = NewType("ProductId", int)

MAX_NAME_LENGTH = 200
MAX_PRICE_CENTS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductDraft:
    """What a merchant says of a product. One that breaks a rule cannot be made.

    Raises:
        InvalidFieldError: a text cannot be stored, the name is blank or longer than 200 characters, or the price is
            negative or beyond a 64-bit integer.
    """

    name: str
    description: str
    price_cents: int

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_text("description", self.description)
        if not self.name.strip():
            raise InvalidFieldError("name", "must not be blank")
        if len(self.name) > MAX_NAME_LENGTH:
            raise InvalidFieldError("name", f"must have at most {MAX_NAME_LENGTH} characters, not {len(self.name)}")
        if not 0 <= self.price_cents <= MAX_PRICE_CENTS:
            raise InvalidFieldError("price_cents", f"must be from 0 to {MAX_PRICE_CENTS}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product of the shop. `in_stock` and `published_at` are None until it is published."""

    id: ProductId
    name: str
    description: str
    price_cents: int
    in_stock: bool | None
    created_at: datetime
    published_at: datetime | None

    @property
    def is_published(self) -> bool:
        """Tell whether customers can see the product."""
        return self.published_at is not None
