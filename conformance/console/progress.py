"""Progress of long work: a bar on a terminal, lines elsewhere. On standard error, so that results can be piped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformance.console.terminal import Console

_CONSOLE = Console(stderr=True, highlight=False)
#: How many lines tell how far the work is, where there is no terminal.
_LINES = 10


@contextmanager
def bar(total: int) -> Iterator[Callable[[str], None]]:
    """A progress bar over `total` steps, as a function to call with a label after each of them."""
    if not _CONSOLE.is_live:
        done = 0

        def count(label: str) -> None:
            nonlocal done
            done += 1
            if done * _LINES // total > (done - 1) * _LINES // total:
                line(f"{done} of {total}")

        yield count
        return
    with drawn(_CONSOLE) as shown:
        task = shown.add_task("", total=total)
        yield lambda label: shown.update(task, advance=1, description=label)


def drawn(console: Console) -> Progress:
    """A bar that is drawn anew on `console`, a terminal, and leaves nothing there: not begun yet, and without steps."""
    columns = (TextColumn("{task.description:14}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def line(text: str) -> None:
    """Print a line above the bar."""
    _CONSOLE.print(text, markup=False, soft_wrap=True)
