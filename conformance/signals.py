"""The signals that end a run: Ctrl-C, what pipelines send, and the end of its terminal or connection."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def _ending() -> frozenset[signal.Signals]:
    found = {signal.SIGINT, signal.SIGTERM}
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:  # as nohup asks for
        found.add(hangup)
    return frozenset(found)


ENDING = _ending()


def ignore_ending_signals() -> None:
    """Ignore these signals from now on: the process is about to end anyway, or another process ends it."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def held_back() -> Iterator[None]:
    """Delay these signals while a process is being forked: an interruption would otherwise leave the fork to itself, or
    print a traceback."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay an interruption until the block is done, since half of it would be worth nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}
    try:
        for number in ENDING:
            signal.signal(number, lambda number, frame: arrived.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for waiting in arrived[:1]:
            signal.raise_signal(waiting)
