"""Run an application's processes on this machine: for development, and for the demo."""

from sweephand.dev.local_stack import LocalStack, StackAddresses

__all__ = ["LocalStack", "StackAddresses"]
