"""The reference server as a target: it runs in a process of its own, and is reached like anybody's server."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.target import REFERENCE, Mode, Secret, States, Target


@dataclass(frozen=True)
class Address:
    """Where a reference server listens, and its key; plain data that a worker can be told."""

    base_url: str
    states_url: str
    key: str

    def target(self) -> Target:
        """The target that this server is."""
        states = States(url=self.states_url)
        return Target(REFERENCE, self.base_url, Secret(self.key), Mode.FULL, states=states)


class ReferenceServer:
    """A running reference server; `stop` it at the end. It ends by itself if this process does."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        """Start it with further command-line `arguments` (`--fault NAME`). Raises OSError if it does not start."""
        key = f"sk_{secrets.token_urlsafe(12)}.{secrets.token_urlsafe(9)}"  # with what there are near misses for
        # Not with the current folder in its path: a file there may have the name of a module.
        command = [sys.executable, "-P", "-m", "reference_server", "--port", "0", "--states-port", "0"]
        command += ["--ready-json", "--exit-with-parent", "--api-key-env", "STORE_ORDERS_REFERENCE_KEY", *arguments]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "STORE_ORDERS_REFERENCE_KEY": key},
            start_new_session=True,  # Ctrl-C is for the run, which then stops the server
        )
        self._key = key
        self._address: Address | None = None

    @property
    def address(self) -> Address:
        """Its address; waits until it listens."""
        if self._address is None:
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line:
                raise OSError(f"the reference server did not start (exit status {self._process.wait()})")
            ready = json.loads(line)
            self._address = Address(ready["base_url"], ready["states_url"], self._key)
        return self._address

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
