"""Join the routes to one ASGI application, and give the shop's errors their HTTP status."""

from fastapi import FastAPI, Request, Response, status

from storefront.adapters.http.orders import order_routes
from storefront.adapters.http.products import product_routes
from storefront.domain.errors import (
    InvalidFieldError,
    OrderNotFoundError,
    ProductNotForSaleError,
    ProductNotFoundError,
    StorageUnavailableError,
)
from storefront.ports import NewUnitOfWork
from sweephand.web.problems import FieldError, install_problem_handlers, problem_response


def http_app(new_unit_of_work: NewUnitOfWork) -> FastAPI:
    """Return the API. Every error that it answers is problem+json."""
    api = FastAPI(title="storefront", version="1")
    install_problem_handlers(api)

    @api.exception_handler(InvalidFieldError)
    async def refuse(request: Request, error: InvalidFieldError) -> Response:
        wrong = FieldError(field=f"body.{error.field}", message=error.rule)
        return problem_response(
            status.HTTP_422_UNPROCESSABLE_CONTENT, detail=str(error), instance=request.url.path, errors=[wrong]
        )

    @api.exception_handler(ProductNotFoundError)
    @api.exception_handler(OrderNotFoundError)
    async def miss(request: Request, error: ProductNotFoundError | OrderNotFoundError) -> Response:
        return problem_response(status.HTTP_404_NOT_FOUND, detail=str(error), instance=request.url.path)

    @api.exception_handler(ProductNotForSaleError)
    async def decline(request: Request, error: ProductNotForSaleError) -> Response:
        return problem_response(status.HTTP_409_CONFLICT, detail=str(error), instance=request.url.path)

    @api.exception_handler(StorageUnavailableError)
    async def postpone(request: Request, error: StorageUnavailableError) -> Response:
        return problem_response(
            status.HTTP_503_SERVICE_UNAVAILABLE,
            detail=str(error),
            instance=request.url.path,
            headers={"Retry-After": "1"},
        )

    @api.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """Tell that the process answers; whether it reaches the database is for /readyz to say."""
        return {"status": "ok"}

    api.include_router(product_routes(new_unit_of_work))
    api.include_router(order_routes(new_unit_of_work))
    return api
