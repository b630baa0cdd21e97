"""The signals that end a run: Ctrl-C, what pipelines send, and the end of the terminal or connection it runs in."""

from __future__ import annotations

import signal


def _ending() -> frozenset[signal.Signals]:
    found = {signal.SIGINT, signal.SIGTERM}
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:  # as nohup asks for
        found.add(hangup)
    return frozenset(found)


ENDING = _ending()
