"""Orders over HTTP."""

from datetime import datetime
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Path, Response, status
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr

from storefront.adapters.http.formats import MAX_ID, Int64, require_json
from storefront.domain.order import MAX_EMAIL_LENGTH, MAX_QUANTITY, Order, OrderDraft, OrderId
from storefront.ports import NewUnitOfWork
from storefront.use_cases.get_order import get_order
from storefront.use_cases.place_order import place_order


class NewOrderBody(BaseModel):
    """What a request says of a new order. Exactly these fields and JSON types: 1.0, "1" and true are no quantities."""

    model_config = ConfigDict(extra="forbid")

    product_id: Annotated[StrictInt, Field(ge=1, le=MAX_ID), Int64]
    quantity: Annotated[StrictInt, Field(ge=1, le=MAX_QUANTITY)]
    email: Annotated[StrictStr, Field(max_length=MAX_EMAIL_LENGTH)]


class OrderBody(BaseModel):
    """An order as JSON. It does not tell the e-mail address, which whoever guesses an id would read."""

    id: Annotated[int, Int64]
    product_id: Annotated[int, Int64]
    quantity: int
    placed_at: datetime
    confirmed_at: datetime | None


def order_routes(new_unit_of_work: NewUnitOfWork) -> APIRouter:
    """Return the routes under /api/v1/orders."""
    routes = APIRouter(prefix="/api/v1/orders", tags=["orders"])
    log = structlog.get_logger()

    @routes.post("", status_code=status.HTTP_201_CREATED, dependencies=[Depends(require_json)])
    def place(body: NewOrderBody, response: Response) -> OrderBody:
        """Place an order; a job confirms it by mail within seconds, which sets `confirmed_at`."""
        order = place_order(OrderDraft(**body.model_dump()), new_unit_of_work=new_unit_of_work)
        log.info("order_placed", order_id=order.id)
        response.headers["Location"] = f"/api/v1/orders/{order.id}"
        return _body(order)

    @routes.get("/{order_id}")
    def show(order_id: Annotated[int, Path(ge=1, le=MAX_ID)]) -> OrderBody:
        """Return an order, confirmed or not."""
        return _body(get_order(OrderId(order_id), new_unit_of_work=new_unit_of_work))

    return routes


def _body(order: Order) -> OrderBody:
    return OrderBody.model_validate(order, from_attributes=True)
