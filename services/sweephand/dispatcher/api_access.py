"""Reach the Kubernetes API server as this pod's service account: its address, its authority and the token of the moment."""

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sweephand.model.errors import SettingsError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_SECONDS = 10.0
"""How long a token is used before its file is read again: the kubelet replaces short-lived ones long before their end."""


class TokenFile:
    """A token that somebody else keeps fresh in a file."""

    def __init__(self, path: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._monotonic = monotonic
        self._token: str | None = None
        self._read_at = 0.0

    def token(self) -> str | None:
        """Return the token, at most 10 s old. If the file cannot be read, the last one, or None."""
        if self._token is None or self._monotonic() - self._read_at >= TOKEN_SECONDS:
            self.read_again()
        return self._token

    def read_again(self) -> bool:
        """Read the file now, and return whether the token is another one."""
        before = self._token
        try:
            self._token = self._path.read_text(encoding="ascii").strip() or before
        except (OSError, UnicodeDecodeError):
            return False
        self._read_at = self._monotonic()
        return self._token != before


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """How to reach an API server: without a token file nobody is named, without a CA file the system's authorities count."""

    api_url: str
    token_path: Path | None = None
    ca_path: Path | None = None

    @classmethod
    def in_cluster(cls, environment: Mapping[str, str], *, service_account: Path = SERVICE_ACCOUNT) -> "ApiAccess":
        """Return the access that Kubernetes gives each pod.

        Raises:
            SettingsError: this process is in no pod, or its pod has no token.
        """
        host = environment.get("KUBERNETES_SERVICE_HOST")
        if not host:
            raise SettingsError("KUBERNETES_SERVICE_HOST is not set: outside of Kubernetes set SWEEPHAND_ELECTOR=postgres")
        if not (service_account / "token").is_file():
            raise SettingsError(
                f"{service_account / 'token'} does not exist: set automountServiceAccountToken: true for this pod, "
                "or SWEEPHAND_ELECTOR=postgres"
            )
        port = environment.get("KUBERNETES_SERVICE_PORT", "443")
        return cls(
            f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
            token_path=service_account / "token",
            ca_path=service_account / "ca.crt",
        )

    def tls(self) -> ssl.SSLContext:
        """Return a TLS context, with the authority as its file is now."""
        return ssl.create_default_context(cafile=self.ca_path)
