"""Name everything that the shop refuses or fails at; ways in translate these, and only these."""


class StorefrontError(Exception):
    """Be the root of all errors of the shop."""


class InvalidFieldError(StorefrontError):
    """Say which `field` of an input breaks which `rule`; nothing was written."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field} {rule}")
        self.field = field
        self.rule = rule


class ProductNotFoundError(StorefrontError):
    """Say that no product has this id."""

    def __init__(self, product_id: int) -> None:
        super().__init__(f"there is no product {product_id}")


class ProductNotForSaleError(StorefrontError):
    """Say that the product cannot be ordered: it is not published yet, or it is sold out."""

    def __init__(self, product_id: int, *, is_published: bool) -> None:
        reason = "is sold out; order another one" if is_published else "is not published yet; order it once it is"
        super().__init__(f"product {product_id} {reason}")


class OrderNotFoundError(StorefrontError):
    """Say that no order has this id."""

    def __init__(self, order_id: int) -> None:
        super().__init__(f"there is no order {order_id}")


class WarehouseError(StorefrontError):
    """Say that the warehouse gave no answer or none that can be understood; asking again later is safe."""


class MailError(StorefrontError):
    """Say that a mail was refused, or that nobody knows whether it was; sending it again is safe. It never tells the address."""


class StorageUnavailableError(StorefrontError):
    """Say that the database cannot be reached now; the transaction wrote nothing, or its COMMIT went unanswered."""


class UnitOfWorkClosedError(StorefrontError):
    """Say that a repository was used outside of its unit of work: a mistake in the calling code."""
