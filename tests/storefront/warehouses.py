"""Warehouses for tests: a fake, and a real HTTP server in the company's warehouse's place."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from storefront.domain.errors import WarehouseError
from storefront.domain.product import ProductId


def nothing() -> None:
    """Happen not at all."""


@dataclass(slots=True, kw_only=True)
class FakeWarehouse:
    """Answers at once. `during` runs while the shop waits; the first `failures` calls fail."""

    sold_out: frozenset[int] = frozenset()
    failures: int = 0
    during: Callable[[], None] = nothing
    reserved: set[int] = field(default_factory=set)

    def reserve_stock(self, product_id: ProductId) -> bool:
        self.during()
        if self.failures > 0:
            self.failures -= 1
            raise WarehouseError("the fake warehouse was told to fail")
        if product_id in self.sold_out:
            return False
        self.reserved.add(product_id)
        return True


@dataclass(slots=True, kw_only=True)
class WarehouseServer:
    """What a test says of the server's behaviour, and what the server saw. `hang` is waited for before each answer."""

    url: str
    sold_out: frozenset[int] = frozenset()
    status: int = 200
    body: bytes | None = None
    hang: threading.Event | None = None
    keys: list[str] = field(default_factory=list)
    reservations: dict[str, int] = field(default_factory=dict)

    def answer(self, key: str, product_id: int) -> bytes:
        self.keys.append(key)
        if self.hang is not None:
            self.hang.wait(timeout=30)
        if self.body is not None:
            return self.body
        if product_id not in self.sold_out:
            self.reservations[key] = product_id
        return json.dumps({"in_stock": key in self.reservations}).encode()


@contextmanager
def running_warehouse_server() -> Iterator[WarehouseServer]:
    """Serve `POST /reservations` on a free port of this machine for the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = behaviour.answer(self.headers["Idempotency-Key"], request["product_id"])
            try:
                self.send_response(behaviour.status if self.path == "/reservations" else 404)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except ConnectionError:
                self.close_connection = True  # the shop did not wait for the answer

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    behaviour = WarehouseServer(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield behaviour
    finally:
        if behaviour.hang is not None:
            behaviour.hang.set()
        server.shutdown()
        thread.join()
        server.server_close()
