"""Products over HTTP."""

from datetime import datetime
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Path, Response, status
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from storefront.adapters.http.formats import MAX_ID, Int64, require_json
from storefront.domain.product import MAX_NAME_LENGTH, MAX_PRICE_CENTS, Product, ProductDraft, ProductId
from storefront.ports import NewUnitOfWork
from storefront.use_cases.create_product import create_product
from storefront.use_cases.get_product import get_product


class NewProductBody(BaseModel):
    """What a request says of a new product. Exactly these fields and JSON types: 1.0, "1" and true are no prices."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[StrictStr, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
    description: StrictStr
    price_cents: Annotated[StrictInt, Field(ge=0, le=MAX_PRICE_CENTS), Int64]


class ProductBody(BaseModel):
    """A product as JSON. Ids and prices are 64-bit integers: read them with a parser that keeps more than 53 bits."""

    id: Annotated[int, Int64]
    name: str
    description: str
    price_cents: Annotated[int, Int64]
    in_stock: bool | None
    created_at: datetime
    published_at: datetime | None


def product_routes(new_unit_of_work: NewUnitOfWork) -> APIRouter:
    """Return the routes under /api/v1/products."""
    routes = APIRouter(prefix="/api/v1/products", tags=["products"])
    log = structlog.get_logger()

    @routes.post("", status_code=status.HTTP_201_CREATED, dependencies=[Depends(require_json)])
    def create(body: NewProductBody, response: Response) -> ProductBody:
        """Create a product; a job publishes it within seconds, which sets `in_stock` and `published_at`."""
        product = create_product(ProductDraft(**body.model_dump()), new_unit_of_work=new_unit_of_work)
        log.info("product_created", product_id=product.id)
        response.headers["Location"] = f"/api/v1/products/{product.id}"
        return _body(product)

    @routes.get("/{product_id}")
    def show(product_id: Annotated[int, Path(ge=1, le=MAX_ID)]) -> ProductBody:
        """Return a product, published or not."""
        return _body(get_product(ProductId(product_id), new_unit_of_work=new_unit_of_work))

    return routes


def _body(product: Product) -> ProductBody:
    return ProductBody.model_validate(product, from_attributes=True)
