"""The command line: `python -m reference_server`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence

from .running import add_options, serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Takes the command line, serves, gives the exit status."""
    parser = ArgumentParser("reference_server", description="A correct Store Orders Service to test against.")
    add_options(parser)
    return serve(parser.parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
