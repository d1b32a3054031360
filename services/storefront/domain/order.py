"""What an order is, and what may be said of one."""

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from storefront.domain.errors import InvalidFieldError
from storefront.domain.product import ProductId
from storefront.domain.text import check_text

OrderId = NewType("OrderId", int)

MAX_QUANTITY = 1_000
MAX_EMAIL_LENGTH = 254
"""Source: RFC 5321, section 4.5.3.1.3: a path has at most 256 characters, its angle brackets included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderDraft:
    """What a customer says of an order. One that breaks a rule cannot be made.

    Whether the e-mail address exists only a mail to it can tell, so little is asked of its form.

    Raises:
        InvalidFieldError: the quantity is not from 1 to 1000, or the e-mail address is longer than 254 characters, cannot be
            stored, contains whitespace or control characters, or has not something on both sides of one @.
    """

    product_id: ProductId
    quantity: int
    email: str

    def __post_init__(self) -> None:
        if not 1 <= self.quantity <= MAX_QUANTITY:
            raise InvalidFieldError("quantity", f"must be from 1 to {MAX_QUANTITY}")
        check_text("email", self.email)
        if len(self.email) > MAX_EMAIL_LENGTH:
            raise InvalidFieldError("email", f"must have at most {MAX_EMAIL_LENGTH} characters, not {len(self.email)}")
        # A line break in a mail's header begins another header, of the customer's choice.
        if any(character.isspace() or unicodedata.category(character) == "Cc" for character in self.email):
            raise InvalidFieldError("email", "must not contain whitespace or control characters")
        local_part, _, domain = self.email.partition("@")
        if not local_part or not domain or "@" in domain:
            raise InvalidFieldError("email", "must have something on both sides of one @")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """An order of a product. `confirmed_at` is None until its confirmation was mailed."""

    id: OrderId
    product_id: ProductId
    quantity: int
    email: str
    placed_at: datetime
    confirmed_at: datetime | None

    @property
    def is_confirmed(self) -> bool:
        """Tell whether the customer was sent the confirmation."""
        return self.confirmed_at is not None
