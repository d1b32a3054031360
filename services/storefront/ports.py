"""What the use cases need from outside. A docstring here is the contract that every adapter is tested against."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from storefront.domain.order import Order, OrderDraft, OrderId
from storefront.domain.product import Product, ProductDraft, ProductId

JobKind = Literal["publish_product", "confirm_order"]
"""The jobs that a use case may enqueue; mypy checks the names, adapters/jobs.py defines them."""


class Products(Protocol):
    """The products in the store. Each call belongs to the open unit of work."""

    def add(self, draft: ProductDraft) -> Product:
        """Store a new, unpublished product and return it with its id and time of creation."""

    def get(self, product_id: ProductId) -> Product:
        """Return the product.

        Raises:
            ProductNotFoundError: there is none of this id.
        """

    def publish(self, product_id: ProductId, *, in_stock: bool) -> bool:
        """Publish the product now, unless it already is or does not exist; return whether this call did it.

        Of several concurrent calls exactly one returns True, and `published_at` never changes afterwards.
        """


class Orders(Protocol):
    """The orders in the store. Each call belongs to the open unit of work."""

    def add(self, draft: OrderDraft) -> Order:
        """Store a new, unconfirmed order of a product that exists, and return it with its id and the time it was placed."""

    def get(self, order_id: OrderId) -> Order:
        """Return the order.

        Raises:
            OrderNotFoundError: there is none of this id.
        """

    def confirm(self, order_id: OrderId) -> bool:
        """Confirm the order now, unless it already is or does not exist; return whether this call did it.

        Of several concurrent calls exactly one returns True, and `confirmed_at` never changes afterwards.
        """


class JobQueue(Protocol):
    """Jobs that exist if and only if the unit of work commits."""

    def enqueue(self, kind: JobKind, **arguments: int) -> None:
        """Add a job of this kind; a duplicate of an unfinished one adds nothing."""


class UnitOfWork(Protocol):
    """One open transaction. Used after its end, it raises UnitOfWorkClosedError."""

    @property
    def products(self) -> Products:
        """Return the products, seen and changed within the transaction."""

    @property
    def orders(self) -> Orders:
        """Return the orders, seen and changed within the transaction."""

    @property
    def jobs(self) -> JobQueue:
        """Return the queue that gets its jobs within the transaction."""


NewUnitOfWork = Callable[[], AbstractContextManager[UnitOfWork]]
"""Opens a transaction for a `with` block: commits at its end, rolls back on an exception.

Raises StorageUnavailableError, from the block's start or end, when the database cannot be reached.
"""


class Warehouse(Protocol):
    """The company's warehouse: another system, seconds away. Never call it with a transaction open."""

    def reserve_stock(self, product_id: ProductId) -> bool:
        """Reserve stock of the product, and return whether there is any.

        Idempotent: asked again for the same product, it reserves nothing more and answers the same. Returns or raises
        within the job's time limit, and lets the limit's exception through.

        Raises:
            WarehouseError: no answer, or one that cannot be understood; ask again later.
        """


class Mailer(Protocol):
    """What brings mails to customers: another system, seconds away. Never call it with a transaction open."""

    def send_confirmation(self, order: Order, *, product: Product) -> None:
        """Mail the customer that the order of `product` was placed; returns once a mail system has taken the mail on.

        At least once: a process that dies between the mail and the commit that records it leaves an attempt to come, which mails
        again. So every attempt for the same order carries the same Message-ID, by which mail systems can tell a repetition.
        Returns or raises within the job's time limit, and lets the limit's exception through. Threads may share one.

        Raises:
            MailError: the mail was refused, or nobody knows whether it was taken on; send it again later.
        """
