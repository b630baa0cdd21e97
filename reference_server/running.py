"""A service with its listeners, started and stopped; and `serve`, the program behind the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .api import Service
from .control import Control
from .orders import OrderStore
from .registry import Install
from .seed import BadOrdersError, initial_orders
from .server import TIMEOUTS, Listener, Timeouts

VERSION_SEGMENT = "/v1"
DEFAULT_KEY_ENV = "STORE_ORDERS_KEY"
STATES_PATH = "/_states"
_MOST_CONTROL = 64 * 1024 * 1024  # bytes of a message to state control


class UnusableError(Exception):
    """What was asked for cannot be started; the text says why, for the person who asked."""


class Running:
    """A service that is being served. A context manager: leaving it stops the listeners."""

    def __init__(
        self,
        service: Service,
        host: str = "127.0.0.1",
        port: int = 0,
        states_port: int | None = None,
        states_token: bytes | None = None,
        timeouts: Timeouts = TIMEOUTS,
    ) -> None:
        """Takes the service, the port (0: a free one), and that of state control (`None`: none)."""
        self.service = service
        base = service.base
        control = Control(service, states_token)
        self._listeners = [Listener(service, host, port, timeouts)]
        self.base_url = self._listeners[0].origin + base
        """The address that ends with `/v1` (section 1)."""
        self.states_url: str | None = None
        """Where state control takes its messages, if it is on."""
        if states_port is not None:
            try:
                self._listeners.append(Listener(control, host, states_port, timeouts, _MOST_CONTROL))
            except OSError:
                self._listeners[0].server_close()
                raise
            self.states_url = self._listeners[1].origin + STATES_PATH
        for listener in self._listeners:
            listener.start()

    def stop(self) -> None:
        """Closes both listeners and every connection."""
        for listener in self._listeners:
            listener.stop()

    def __enter__(self) -> Running:
        """Gives itself: it is being served already."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stops."""
        self.stop()


def build(
    key: bytes,
    orders: str | None = None,
    base_path: str = "",
    faults: Iterable[str] = (),
    variants: Iterable[str] = (),
) -> Service:
    """Makes a service, not yet served.

    Takes the API key, the orders (a number, a file, or `None` for the seed), what comes before `/v1` in the
    base address (section 1), and the names of faults and variants to put in. Raises `UnusableError`.
    """
    if not key or not all(0x21 <= byte <= 0x7E for byte in key):
        raise UnusableError("the API key must be visible ASCII characters, at least one, without spaces")
    if base_path and (not base_path.startswith("/") or base_path.endswith("/")):
        raise UnusableError("the base path must begin with a slash and not end with one")
    try:
        service = Service(OrderStore(initial_orders(orders)), key, base_path + VERSION_SEGMENT)
    except BadOrdersError as problem:
        raise UnusableError(str(problem)) from None
    install(service, faults, variants)
    return service


def install(service: Service, faults: Iterable[str], variants: Iterable[str]) -> None:
    """Puts variants, then faults, into a service by name. Raises `UnusableError` for unknown names."""
    for name in variants:
        _named("variant", name)(service)
    for name in faults:
        _named("fault", name)(service)


def _named(kind: str, name: str) -> Install:
    """What puts the fault or variant of this name into a service. Raises `UnusableError` where there is none."""
    # Imported only where one is asked for: other starts need to be quick.
    from difflib import get_close_matches

    from .faults import FAULTS
    from .variants import VARIANTS

    known, others, other = (FAULTS, VARIANTS, "variant") if kind == "fault" else (VARIANTS, FAULTS, "fault")
    if name in known:
        return known[name].install
    if name in others:
        hint = f"it is a {other}: --{other} {name}"
    elif close := get_close_matches(name, known, 3):
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = "`store-orders-conformance faults` lists them"
    raise UnusableError(f"there is no {kind} named {name}; {hint}")


def add_options(parser: ArgumentParser) -> None:
    """Adds the options of the program to a parser; `serve` takes what it parses."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=int, default=0, metavar="N", help="port of the service (default: a free one)")
    add("--states-port", type=int, metavar="N", help="port for state control, 0 for a free one (default: off)")
    add(
        "--api-key-env",
        default=DEFAULT_KEY_ENV,
        metavar="VAR",
        help="variable that holds the API key (default: %(default)s; unset: a random key, written to a file)",
    )
    add("--states-token-env", metavar="VAR", help="variable that holds the bearer token for state control")
    add("--orders", metavar="N|FILE", help="orders at the start: how many, or a JSON file (default: eight)")
    add("--base-path", default="", metavar="PATH", help="what comes before /v1 in the base address")
    add("--ready-json", action="store_true", help="once listening, print one JSON line with the addresses")
    add("--exit-with-parent", action="store_true", help="stop when standard input ends")
    add(
        "--verbose",
        action="store_true",
        help="show every request, and the trace of internal errors, on stderr",
    )
    for flag, what in (
        ("--fault", "serve with this fault, which breaks one requirement"),
        ("--variant", "serve in this unusual, correct way"),
    ):
        said = f"{what} (several names, or repeatedly)"
        add(flag, action="extend", nargs="+", default=[], metavar="NAME", help=said)


def serve(options: Namespace) -> int:
    """Serves until SIGTERM, SIGINT, SIGHUP (unless that is ignored, as nohup has it) or, if asked for, the end of
    standard input. Call it from the main thread.

    Takes the parsed options of `add_options`. Gives the exit status: 0 when stopped, 2 with a line on stderr when it
    could not start.
    """
    stopping = threading.Event()
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    heeded = hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN
    for number in (signal.SIGTERM, signal.SIGINT, *((hangup,) if heeded else ())):
        signal.signal(number, lambda *_: stopping.set())
    key_file: Path | None = None
    try:
        key = os.environ.get(options.api_key_env)
        if key is None:
            key, key_file = _new_key()
        _look_at_ports(options)
        service = build(os.fsencode(key), options.orders, options.base_path, options.fault, options.variant)
        service.verbose = options.verbose
        token = _token(options.states_token_env)
        with Running(service, options.host, options.port, options.states_port, token) as running:
            _announce(running, options.ready_json, options.api_key_env, key_file)
            if options.exit_with_parent:
                threading.Thread(target=_await_end_of_input, args=(stopping,), daemon=True).start()
            stopping.wait()
        return 0
    except (UnusableError, OSError) as problem:
        print(f"cannot serve: {problem}", file=sys.stderr)
        return 2
    finally:
        if key_file:
            key_file.unlink(missing_ok=True)


def _look_at_ports(options: Namespace) -> None:
    """Raises `UnusableError` for ports that are none, and for state control that others could reach without a token:
    it empties the store for whoever asks."""
    for flag, port in (("--port", options.port), ("--states-port", options.states_port)):
        if port is not None and not 0 <= port <= 65535:
            raise UnusableError(f"{flag} is 0 to 65535, not {port}")
    own = options.host in ("localhost", "::1") or re.fullmatch(r"127(\.[0-9]{1,3}){3}", options.host)
    if options.states_port is not None and options.states_token_env is None and not own:
        raise UnusableError(f"others could reach state control on {options.host}: it takes --states-token-env there")


def _new_key() -> tuple[str, Path]:
    # Imported only here: most starts bring their key along and need to be quick.
    import secrets
    import tempfile

    key = secrets.token_urlsafe(32)
    descriptor, name = tempfile.mkstemp(prefix="store-orders-key-")  # mode 0600
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
    return key, Path(name)


def _token(variable: str | None) -> bytes | None:
    if variable is None:
        return None
    token = os.environ.get(variable)
    if not token:
        raise UnusableError(f"the variable {variable} for the state control token is not set")
    return os.fsencode(token)


def _announce(running: Running, ready_json: bool, api_key_env: str, key_file: Path | None) -> None:
    if ready_json:
        ready = {"base_url": running.base_url, "states_url": running.states_url, "pid": os.getpid()}
        print(json.dumps(ready), flush=True)
        if key_file:
            print(f"The API key is in {key_file}", file=sys.stderr, flush=True)
        return
    key = f"$(cat {key_file})" if key_file else f"${api_key_env}"
    lines = [f"Store Orders Service at {running.base_url}"]
    if key_file:
        lines.append(f"The API key is in {key_file} (deleted at the end)")
    if running.states_url:
        lines.append(f"State control at {running.states_url}")
    lines += [
        f'Try: curl -H "Authorization: Bearer {key}" {running.base_url}/store/orders',
        "Stop with Ctrl-C.",
    ]
    print("\n".join(lines), flush=True)


def _await_end_of_input(stopping: threading.Event) -> None:
    with suppress(OSError):  # no sys.stdin here: its lock would disturb the end of the process
        while os.read(0, 4096):
            pass
    stopping.set()
