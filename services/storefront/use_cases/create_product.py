"""Take a new product into the shop."""

from storefront.domain.product import Product, ProductDraft
from storefront.ports import NewUnitOfWork


def create_product(draft: ProductDraft, *, new_unit_of_work: NewUnitOfWork) -> Product:
    """Store the product together with the job that will publish it, in one transaction: both or neither."""
    with new_unit_of_work() as uow:
        product = uow.products.add(draft)
        uow.jobs.enqueue("publish_product", product_id=product.id)
    return product
