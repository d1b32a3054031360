"""The fixture of the shop's tests."""

from collections.abc import Iterator

import pytest

from tests.storefront.shop import Shop, open_shop


@pytest.fixture
def shop(database_url: str) -> Iterator[Shop]:
    """The shop on this test's own database."""
    with open_shop(database_url) as shop:
        yield shop
