"""Look at a product."""

from storefront.domain.product import Product, ProductId
from storefront.ports import NewUnitOfWork


def get_product(product_id: ProductId, *, new_unit_of_work: NewUnitOfWork) -> Product:
    """Return the product, published or not.

    Raises:
        ProductNotFoundError: there is none of this id.
    """
    with new_unit_of_work() as uow:
        return uow.products.get(product_id)
