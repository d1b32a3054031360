"""Say whether a release works: a job enqueued over the API is done by a worker, and one dispatcher holds the Lease.

Run by `helm test`. Uses the standard library only, so that it also runs in an application's own image.
"""

import json
import os
import socket
import sys
import time
import urllib.error
import urllib.request

API_URL = os.environ["API_URL"]
METRICS_HOST = os.environ["METRICS_HOST"]
LEASE_NAME = os.environ["LEASE_NAME"]
ENQUEUE_PATH = os.environ["ENQUEUE_PATH"]
ENQUEUE_BODY = os.environ["ENQUEUE_BODY"]
DONE_FIELD = os.environ["DONE_FIELD"]
DEADLINE = time.monotonic() + float(os.environ["TIMEOUT_SECONDS"])


def main():
    if ENQUEUE_PATH:
        made = wait_for("an answer to POST " + ENQUEUE_PATH, lambda: call(API_URL + ENQUEUE_PATH, body=ENQUEUE_BODY))
        url = f"{API_URL}{ENQUEUE_PATH}/{made['id']}"
        print(f"made {ENQUEUE_PATH}/{made['id']}, and with it a job")
        done = wait_for(f"a worker to set {DONE_FIELD}", lambda: call(url)[DONE_FIELD])
        print(f"a worker did the job: {DONE_FIELD}={done}")
    leader = wait_for("one leader", the_one_leader)
    print(f"one dispatcher holds the Lease {LEASE_NAME}: {leader}")


def the_one_leader():
    """Return the address of the process that says it holds the Lease, if exactly one does."""
    sought = f'leader_election_master_status{{name="{LEASE_NAME}"}} 1'
    leaders = [address for address in metrics_addresses() if sought in metrics_of(address)]
    return leaders[0] if len(leaders) == 1 else None


def metrics_addresses():
    found = socket.getaddrinfo(METRICS_HOST, 9090, type=socket.SOCK_STREAM)
    return sorted({address[0] for *_, address in found})


def metrics_of(address):
    host = f"[{address}]" if ":" in address else address
    with urllib.request.urlopen(f"http://{host}:9090/metrics", timeout=5) as answer:
        return answer.read().decode()


def call(url, body=None):
    request = urllib.request.Request(url, body and body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def wait_for(what, ask):
    """Return the first answer of `ask` that is not empty; end the test at the deadline, with the last error."""
    problem = "not yet"
    while time.monotonic() < DEADLINE:
        try:
            answer = ask()
        except urllib.error.HTTPError as error:
            problem = f"{error} {error.read(500).decode(errors='replace')}"
        except (OSError, ValueError, KeyError) as error:
            problem = repr(error)
        else:
            if answer:
                return answer
            problem = "not yet"
        time.sleep(1)
    sys.exit(f"waited in vain for {what}: {problem}")


main()
