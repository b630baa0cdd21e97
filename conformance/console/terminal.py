"""The console that every command prints to."""

from __future__ import annotations

from typing import Any

from rich import console

from conformance.console.streams import silence


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
        silence(self.file)
