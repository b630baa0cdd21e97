"""The console that every command prints to."""

from __future__ import annotations

import os

from rich import console


class Console(console.Console):
    """Falls silent once its reader has left (`… | head -1`), so that the command ends with the status that it has to
    tell; rich would end it with 1, which is a verdict."""

    def on_broken_pipe(self) -> None:
        """Print no more, here or elsewhere to the same stream."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())
        os.close(nowhere)
