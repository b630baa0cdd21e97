"""The conformance suite for the Store Orders Service: contract, checks, ways to reach a target, reports."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("store-orders-conformance")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+source"
