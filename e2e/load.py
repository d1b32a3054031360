"""Create products over the API at a steady pace until SIGTERM, then print what came of it. The standard library only.

python load.py <url of the API> <products a second>
"""

import json
import signal
import sys
import threading
import urllib.error
import urllib.request

PRODUCT = json.dumps({"name": "Lamp", "description": "Bright", "price_cents": 100}).encode()


def main(url: str, per_second: float) -> None:
    """Create products until told to end."""
    has_ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: has_ended.set())
    created: list[int] = []
    refused: list[str] = []
    say("load begins")
    while not has_ended.wait(1 / per_second):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{url}/api/v1/products", data=PRODUCT, headers=headers)  # noqa: S310 the shop's own
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 the shop's own
                created.append(json.load(answer)["id"])
        except (OSError, ValueError) as error:
            refused.append(f"{type(error).__name__}: {error}")
    say(json.dumps({"created": created, "refused": refused}))


def say(line: str) -> None:
    """Write a line that is read at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
