"""The storefront as its next version might be: with one kind of job more."""

from storefront.app import create_app as create_storefront
from sweephand import App


def create_app() -> App:
    """Return the storefront, and in it the new kind `remind`."""
    app = create_storefront()

    @app.job()
    def remind(number: int) -> None:
        """Remind somebody of something."""

    return app
