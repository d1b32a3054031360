"""Defaults that depend on where the process runs: in a pod or on someone's machine."""

import os
import socket
from pathlib import Path

from sweephand.settings.choices import ElectorKind

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def default_elector() -> ElectorKind:
    """Return `kubernetes` inside a cluster and `postgres` outside of one."""
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return ElectorKind.KUBERNETES
    return ElectorKind.POSTGRES


def default_identity() -> str:
    """Return the pod's name, or the host's name outside of Kubernetes."""
    return os.environ.get("POD_NAME") or socket.gethostname()


def default_lease_namespace() -> str | None:
    """Return the namespace that the pod's service account belongs to; None without a service account."""
    try:
        return _NAMESPACE_FILE.read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
