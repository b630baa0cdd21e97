"""The console that every command prints to."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

from rich import console


class Console(console.Console):
    """Falls silent once its reader has left (`… | head -1`), so that the command ends with the status that it has to
    tell; rich would end it with 1, which is a verdict."""

    def __init__(self, **options: Any) -> None:
        """The options are those of rich."""
        super().__init__(**options)
        if self.width < 1:  # COLUMNS=0, as scripts have it that ask for the size of no terminal: all would be cut off
            self.width = 80

    @property
    def is_live(self) -> bool:
        """Whether what was printed can be drawn anew. Not so in a file, which is a terminal to rich under FORCE_COLOR,
        as pipelines set it."""
        return self.file.isatty() and not self.is_dumb_terminal

    def on_broken_pipe(self) -> None:
        """Print no more, here or elsewhere to the same stream."""
        self.quiet = True
        _silence(self.file)


def tell(text: str) -> None:
    """Print a line on standard output as it is; nothing once its reader has left, as `Console` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _silence(sys.stdout)


def give_up_unwritable() -> None:
    """Where standard output takes nothing any more (a full disk), drop what is left to print, and print no more: Python
    would try again when it ends, and end with a status of its own (120)."""
    try:
        sys.stdout.flush()
    except OSError:
        _silence(sys.stdout)


def _silence(stream: IO[str]) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
