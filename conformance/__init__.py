"""The conformance suite for the Store Orders Service: contract, checks, ways to reach a target, reports."""

__version__: str


def __getattr__(name: str) -> str:
    """The version of the suite, looked up when somebody asks: the command handles interruptions before."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("store-orders-conformance")
    except PackageNotFoundError:  # a source tree that was never installed
        found = "0+source"
    globals()[name] = found
    return found
