"""Ask the shop's API in this process, and look at what it answers."""

import httpx

from storefront.adapters.http.app import http_app
from storefront.ports import NewUnitOfWork

LAMP = {"name": "Lamp", "description": "Gives light", "price_cents": 1999}
PRODUCTS = "/api/v1/products"
ORDERS = "/api/v1/orders"
JSON = {"Content-Type": "application/json"}
PROBLEM_KEYS = {"type", "title", "status", "detail", "instance", "errors"}


def client_of(new_unit_of_work: NewUnitOfWork) -> httpx.AsyncClient:
    """Return a client of the whole ASGI application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(http_app(new_unit_of_work)), base_url="http://shop")


def assert_problem(answer: httpx.Response, status: int, *, field: str | None = None) -> None:
    """Check that the answer is problem+json with this status, and names the field if one is given."""
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == PROBLEM_KEYS
    assert problem["status"] == status
    assert problem["detail"]
    if field is not None:
        assert field in [error["field"] for error in problem["errors"]]
