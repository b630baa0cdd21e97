"""The state-provider protocol, over HTTP or as a command.

The interface of the service has no way to place an order, so the orders come from the target's owner. One message sets
a state up and answers with the ids of its orders, another tears it down, modelled on Pact's provider states.

    {"state": "pending orders", "action": "setup", "params": {"count": 3}}   →   {"orderIds": [101, 102, 103]}

Whatever goes wrong with a provider is a ProviderError that quotes its answer: a fault of the provider, never of the
service.
"""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from conformance.contract.jsontext import INT64
from conformance.contract.transitions import State
from conformance.target import Secret, States
from conformance.text import beginning, brief
from conformance.transport.client import JsonCaller
from conformance.transport.evidence import handed_out

#: Seconds that a provider may take for one message.
TIMEOUT = 60.0
#: After so many messages in a row that took longer, a provider is not asked again.
GIVE_UP_AFTER = 2
#: Neither is one that failed so many times in a row over at least so many seconds, in which most would have restarted.
FAILURES, FAILING_FOR = 10, 10.0
#: The most bytes that a command may print.
OUTPUT = 32_000_000
#: The exit status of a command, and the status of an HTTP provider, that mean "cannot do this".
CANNOT_EXIT, CANNOT_STATUS = 3, 501
#: Advice for such answers of an HTTP provider.
_HINTS = {
    **dict.fromkeys((401, 403), "; token_env of its table in targets.toml names the variable with a bearer token"),
    **dict.fromkeys((404, 405), "; check its URL"),
}


class ProviderError(Exception):
    """The provider failed; the message says how, and quotes its answer. `placed` are orders that it named nevertheless,
    and that must be returned."""

    def __init__(self, message: str, placed: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.placed = placed


class ProviderAbsent(ProviderError):
    """The provider cannot be started or reached."""


class ProviderLate(ProviderError):
    """The provider took longer than TIMEOUT."""


class CannotDo(Exception):
    """The provider says that it cannot set up this state (a chosen id, an empty store)."""


class Provider(Protocol):
    """Something that answers the messages of the protocol."""

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to `message`, a JSON object. Raises ProviderError and CannotDo."""

    def close(self) -> None:
        """Close whatever is open."""


def connect(states: States, tls: Callable[[], ssl.SSLContext] = ssl.create_default_context) -> Provider:
    """The provider that a target's configuration describes, with these TLS settings. Static lists are not a
    provider."""
    return Patience(HttpProvider(states.url, states.token, tls) if states.url else CommandProvider(states.command))


class Patience:
    """Gives up a provider that was late several times in a row, or failed again and again, since every check would ask
    in vain. A provider that failed is still asked to take back orders."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._late = self._failed = 0
        self._failing_since = 0.0

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        given_up = "the state provider is not asked again, since it"
        if self._late >= GIVE_UP_AFTER:
            raise ProviderError(f"{given_up} took longer than {TIMEOUT:g} s {self._late} times in a row")
        failing = self._failed >= FAILURES and time.monotonic() - self._failing_since >= FAILING_FOR
        if failing and message["action"] == "setup":
            raise ProviderError(f"{given_up} failed {self._failed} times in a row; doctor shows how")
        try:
            answer = self._provider.call(message)
        except CannotDo:
            self._late = self._failed = 0
            raise
        except ProviderError as error:
            self._failing_since = self._failing_since if self._failed else time.monotonic()
            self._failed += 1
            self._late = self._late + 1 if isinstance(error, ProviderLate) else 0
            raise
        self._late = self._failed = 0
        return answer

    def close(self) -> None:
        self._provider.close()


class HttpProvider:
    """Posts each message to a URL."""

    def __init__(self, url: str, token: Secret | None, tls: Callable[[], ssl.SSLContext]) -> None:
        self._shown = url.partition("?")[0]  # some keep a key in the query
        self._caller = JsonCaller(url, token.reveal() if token else None, TIMEOUT, tls)

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        try:
            status, body = self._caller.post(message)
        except TimeoutError as error:
            raise ProviderLate(
                f"the state provider at {self._shown} did not carry out {brief(message)} within {TIMEOUT:g} s: {error}"
            ) from None
        except OSError as error:
            said = str(error).rstrip(".")
            raise ProviderAbsent(
                f"the state provider at {self._shown} gave no answer to {brief(message)}: {said}; is it running?"
            ) from None
        if status == CANNOT_STATUS:
            raise CannotDo(f"the state provider says that it cannot do this (501): {brief(message)}")
        if not 200 <= status < 300:
            hint = _HINTS.get(status, "")
            raise ProviderError(f"the state provider answered {status} to {brief(message)}: {_quote(body)}{hint}")
        return _object(body, message)

    def close(self) -> None:
        self._caller.close()


class CommandProvider:
    """Starts a command for each message: JSON on its standard input, the answer on its standard output, no shell."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        name = self._command[0]
        # Files and not pipes: what a command leaves running in the background may hold a pipe open for ever. A session
        # of its own: Ctrl-C is for the run, which then has orders to return.
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            said.write(json.dumps(message).encode())
            said.seek(0)
            try:
                process = subprocess.Popen(self._command, stdin=said, stdout=out, stderr=err, start_new_session=True)
            except OSError as error:
                raise ProviderAbsent(f"the state provider {name} cannot be started: {_why(error, name)}") from None
            try:
                status = process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                raise ProviderLate(
                    f"the state provider {name} took longer than {TIMEOUT:g} s for {brief(message)}"
                ) from None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            printed, complained = (os.pread(file.fileno(), OUTPUT + 1, 0) for file in (out, err))
        if len(printed) > OUTPUT:
            raise ProviderError(f"the state provider {name} printed more than {OUTPUT:,} bytes at {brief(message)}")
        if status == CANNOT_EXIT:
            raise CannotDo(f"the state provider says that it cannot do this (exit status 3): {brief(message)}")
        if status:
            quoted = _quote(complained or printed)
            raise ProviderError(f"the state provider {name} exited with {status} at {brief(message)}: {quoted}")
        return _object(printed, message)

    def close(self) -> None:
        pass


def _why(error: OSError, name: str) -> str | None:
    """Why the command `name` cannot be started, and how to fix it."""
    if isinstance(error, FileNotFoundError) and Path(name).exists():
        return "its first line names an interpreter that is not there"
    if isinstance(error, PermissionError):
        return f"{error.strerror}; make it executable (chmod +x)"
    return "its first line names no interpreter (#!)" if error.errno == errno.ENOEXEC else error.strerror


class Recorded:
    """A provider whose messages are recorded, each with its answer, or the reason why there is none."""

    def __init__(self, provider: Provider, keep: Callable[[dict[str, Any], float], None]) -> None:
        """`keep` is called with each message and its outcome, and with when it was sent, in seconds since the epoch."""
        self._provider = provider
        self._keep = keep

    def call(self, message: dict[str, Any]) -> dict[str, Any]:
        started = time.time()
        try:
            answer = self._provider.call(message)
        except ProviderError as error:
            self._keep({**message, "failed": str(error)}, started)
            raise
        except CannotDo as refusal:
            self._keep({**message, "cannot": str(refusal)}, started)
            raise
        self._keep({**message, "answer": answer}, started)
        return answer

    def close(self) -> None:
        self._provider.close()


def setup(provider: Provider, state: State, params: dict[str, Any]) -> list[int]:
    """Have orders placed in `state`, pending or shipped, and return their ids: as many as asked for, distinct, in
    int64.

    `params` is {"count": n} or {"ids": [...]}. Raises ProviderError and CannotDo.
    """
    message = {"state": f"{state} orders", "action": "setup", "params": params}
    answer = provider.call(message)
    ids = answer.get("orderIds")
    numbers = [i for i in ids if isinstance(i, int) and not isinstance(i, bool)] if isinstance(ids, list) else []
    placed = tuple(dict.fromkeys(number for number in numbers if number in INT64))
    if not isinstance(ids, list) or len(numbers) < len(ids):
        said = f"{brief(message)} without a list of numbers in orderIds: {brief(answer)}"
        raise ProviderError(f"the state provider answered {said}", placed)
    wanted = params.get("ids")
    problem = None
    if len(set(ids)) != len(ids):
        problem = f"handed out the same order twice: {brief(answer)}"
    elif len(placed) != len(ids):
        problem = f"handed out an id outside int64: {brief(answer)}"
    elif wanted is not None and sorted(ids) != sorted(wanted):
        problem = f"was asked for the ids {wanted} and handed out {brief(ids)}"
    elif wanted is None and len(ids) != params["count"]:
        asked = "1 order" if params["count"] == 1 else f"{params['count']} orders"
        problem = f"was asked for {asked} and handed out {len(ids)}: {brief(answer)}"
    if problem:
        raise ProviderError(f"the state provider {problem}", placed)
    return ids if wanted is None else list(wanted)


def empty(provider: Provider) -> None:
    """Have all orders removed. Raises ProviderError and CannotDo."""
    provider.call({"state": "no orders", "action": "setup", "params": {}})


def teardown(provider: Provider, state: State, ids: list[int]) -> None:
    """Return orders, whether or not they still exist. Raises ProviderError."""
    message = {"state": f"{state} orders", "action": "teardown", "params": {"orderIds": ids}}
    try:
        provider.call(message)
    except CannotDo as error:
        raise ProviderError(str(error)) from None


def given(messages: Iterable[dict[str, Any]]) -> set[str]:
    """The ids of the orders that were handed out, according to the recorded `messages`."""
    return {order for message in messages for order in handed_out(message)}


def given_meanwhile(messages: Iterable[dict[str, Any]]) -> set[str]:
    """The checks that held orders with the same id at the same time, according to the recorded `messages`: what one of
    them does to its order is done to the other's. This happens in a store that gives the ids of cancelled orders to new
    ones."""
    spans: dict[str, dict[str, list[float]]] = {}  # for each order and check, from when to when it was held
    for message in messages:
        check = message["check"]
        for order in handed_out(message):
            span = spans.setdefault(order, {}).setdefault(check, [message["started"], math.inf])
            span[1] = math.inf
        if message["action"] == "teardown":
            for order in message["params"]["orderIds"]:
                if check in spans.get(str(order), {}):
                    spans[str(order)][check][1] = message["ended"]
    return {
        check
        for holders in spans.values()
        for (one, first), (other, second) in itertools.combinations(holders.items(), 2)
        if first[0] <= second[1] and second[0] <= first[1]
        for check in (one, other)
    }


def _object(body: bytes, message: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = json.loads(body) if body.strip() or message["action"] == "setup" else {}
    except (ValueError, RecursionError):
        raise ProviderError(f"the state provider answered {brief(message)} with no JSON: {_quote(body)}") from None
    if not isinstance(answer, dict):
        raise ProviderError(f"the state provider answered {brief(message)} with no JSON object: {_quote(body)}")
    return answer


def _quote(body: bytes) -> str:
    return repr(beginning(body.decode("utf-8", "replace"), 300).strip()) if body.strip() else "(nothing)"
