"""The command's entry: `store-orders-conformance`, and `python -m conformance`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command with the arguments of the process; returns its exit status."""
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    from conformance import cli

    for number, handler in before.items():
        signal.signal(number, handler)
    return cli.main()


def _end(number: int, frame: object) -> None:
    """While there is nothing yet to be cleared away, an interruption ends the process with its status (130)."""
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
