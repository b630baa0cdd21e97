"""The standard streams, of which any may be closed, gone, full or unable to show a character."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import IO


def open_closed() -> None:
    """Put the null device in the place of standard streams that are closed, so that the command does its work although
    nobody reads what it says, and no file or connection gets the number of one of them."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
        os.set_inheritable(opened, opened == number)
        setattr(sys, name, open(opened, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - for good


def escape_unencodable() -> None:
    """Have the streams write characters that they cannot encode as escapes."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def tell(text: str) -> None:
    """Print a line on standard output as it is; nothing once its reader has left, as `terminal.Console` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        silence(sys.stdout)


def complain(text: str) -> None:
    """Print a line on standard error, if that can be written to: the terminal may be gone."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")


def give_up_unwritable() -> None:
    """Where standard output takes nothing any more (a full disk, a reader that has left), drop what is left to print,
    and print no more: Python would try again when it ends, and end with a status of its own (120)."""
    try:
        sys.stdout.flush()
    except OSError:
        silence(sys.stdout)


def silence(stream: IO[str]) -> None:
    """Have all that is still written to `stream` go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
