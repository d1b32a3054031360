"""`sweephand demo`: the storefront's processes, stuck products, and how they get mended, told in half a minute.

`story.py` is what happens, `shop.py` what it asks of the application from outside, `lines.py` reads the processes' logs,
`screen.py` shows all of it. The application is named by a string and reached over HTTP only, as by any client.
"""

from sweephand.demo.story import run

__all__ = ["run"]
