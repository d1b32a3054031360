"""Products over HTTP."""

from datetime import datetime
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Header, HTTPException, Path, Response, status
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from storefront.domain.product import MAX_NAME_LENGTH, MAX_PRICE_CENTS, Product, ProductDraft, ProductId
from storefront.ports import NewUnitOfWork
from storefront.use_cases.create_product import create_product
from storefront.use_cases.get_product import get_product

MAX_ID = 2**63 - 1

Int64 = Field(json_schema_extra={"format": "int64"})


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

    @routes.post("", status_code=status.HTTP_201_CREATED, dependencies=[Depends(_require_json)])
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


def _require_json(content_type: Annotated[str, Header()] = "") -> None:
    """Refuse a body of another media type, which FastAPI would call a wrong value."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(
            status.HTTP_415_UNSUPPORTED_MEDIA_TYPE, f"the Content-Type is {content_type!r}; send application/json"
        )


def _body(product: Product) -> ProductBody:
    return ProductBody.model_validate(product, from_attributes=True)
