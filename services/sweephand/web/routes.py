"""Name routes by their templates, the only part of a path that is a closed set."""

from collections.abc import Iterable, Iterator, Mapping

from starlette.routing import BaseRoute
from starlette.types import Scope

UNMATCHED = "other"


def route_template(scope: Scope) -> str:
    """Return the template of the route that took a request, such as `/products/{product_id}`; `other` if none did."""
    # A mounted application has its own routes and does not see where it is mounted.
    mounted_at = str(scope.get("root_path", "")).removeprefix(str(scope.get("app_root_path", "")))
    effective = _effective_route(scope)
    template = _template(effective if effective is not None else scope.get("route"))
    return f"{mounted_at}{template}" if template else UNMATCHED


def declared_routes(routes: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Give the method and template of every route, those of included routers too. HEAD goes with GET and is left out."""
    for route in routes:
        included = getattr(route, "effective_route_contexts", None)
        if callable(included):
            yield from declared_routes(included())
            continue
        template = _template(route)
        methods = getattr(route, "methods", None)
        if template and isinstance(methods, Iterable):
            for method in sorted(str(name) for name in methods):
                if method != "HEAD":
                    yield method, template


def _effective_route(scope: Scope) -> object:
    """Return the route with the prefixes of the routers that include it; None where the route knows them itself.

    FastAPI has two places for it: the scope's `route` is as its own router knows it, without the prefix.
    """
    own = scope.get("fastapi")
    return own.get("effective_route_context") if isinstance(own, Mapping) else None


def _template(route: object) -> str | None:
    template = getattr(route, "path_format", None) or getattr(route, "path", None)
    return template if isinstance(template, str) and (template or isinstance(route, BaseRoute)) else None
