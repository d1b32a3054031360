"""Applications that the tests' API processes serve."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import psycopg
from fastapi import APIRouter, FastAPI, HTTPException, Query
from fastapi.responses import PlainTextResponse, StreamingResponse
from pydantic import BaseModel, Field

from sweephand import App, ConflictError, EnqueueOutcome, NotFoundError, enqueue
from sweephand.model.errors import DatabaseError
from sweephand.web.problems import install_problem_handlers


class Product(BaseModel):
    name: str = Field(min_length=1, max_length=200)
    price_cents: int = Field(ge=0)


def _make_api() -> FastAPI:
    api = FastAPI()
    install_problem_handlers(api)
    _add_products(api)

    @api.post("/products/{product_id}/publish")
    def publish(product_id: int) -> EnqueueOutcome:
        with psycopg.connect(os.environ["DATABASE_URL"]) as connection, connection.transaction():
            return enqueue(connection, publish_product, product_id=product_id)

    @api.get("/broken")
    def fail() -> None:
        raise RuntimeError("the password is swordfish")

    @api.get("/broken-later")
    async def fail_later() -> StreamingResponse:
        async def stream() -> AsyncIterator[bytes]:
            yield b"begun"
            await asyncio.sleep(0)
            raise RuntimeError("in the middle")

        return StreamingResponse(stream())

    @api.get("/errors/{name}")
    def raise_named(name: str) -> None:
        match name:
            case "not-found":
                raise NotFoundError("there is no job 42; look it up by its kind")
            case "conflict":
                raise ConflictError("job 42 is running; wait for it or cancel it first")
            case "database":
                raise DatabaseError("PostgreSQL does not answer: db.internal refused")
            case _:
                raise HTTPException(418, detail="a teapot", headers={"X-Pot": "tea"})

    @api.get("/slow/{seconds}")
    async def wait(seconds: float) -> PlainTextResponse:
        await asyncio.sleep(seconds)
        return PlainTextResponse("waited")

    return api


def _add_products(api: FastAPI) -> None:
    products = APIRouter(prefix="/products")

    @products.post("", status_code=201)
    def create(product: Product) -> Product:
        return product

    @products.post("/bulk")
    def create_many(found: list[Product]) -> int:
        return len(found)

    @products.get("/{product_id}")
    def show(product_id: int, page: Annotated[int, Query(ge=1)] = 1) -> dict[str, int]:
        return {"id": product_id, "page": page}

    api.include_router(products, prefix="/api/v1")


def _refuse() -> FastAPI:
    raise ValueError("no template directory")


def _connect_cache() -> None:
    raise RuntimeError("no cache server")


def _make_api_that_does_not_start() -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        _connect_cache()
        yield

    return FastAPI(lifespan=lifespan)


app = App("shop", http=_make_api)
bare = App("bare")
refusing = App("refusing", http=_refuse)
not_starting = App("not-starting", http=_make_api_that_does_not_start)


@app.job()
def publish_product(product_id: int) -> None:
    """Do nothing; the API only has to know the job's queue."""
