"""Command lines that repeat exchanges; the shell fills in the key. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from conformance.target import Shell
from conformance.transport.evidence import Exchange, first_field
from conformance.transport.redaction import KEY_LABEL

#: Header fields that curl itself adds as needed.
CURLS = frozenset({"host", "accept-encoding", "connection", "content-length"})
#: What the suite sends by default, and a curl line need not repeat.
USUAL = re.compile(r"Accept: \*/\*|User-Agent: store-orders-conformance/.*", re.IGNORECASE)
#: The line before a curl line that must come later: it waits longer than the checks do.
WAIT = "sleep 1"
#: What curl sends by itself: a line must forbid it if the suite did not send it.
UNASKED = ("User-Agent", "Accept")

#: A line, in front of the id of an order, and that id where it may stand in a list of alternatives.
_ID = re.compile(r"(.*/orders/)([^/?'{}\[\],]+)'")
#: So many lines are not yet too many to be read one by one.
_FEW = 2

#: The key in what a credential writes for the shell, and where that takes more than its value.
_KEY, _PART_OF_KEY = re.compile(r"\$(?:KEY\b|\{KEY\})"), re.compile(r"\$\{(#?)KEY\b")


def curl(exchange: Exchange, shell: Shell) -> str:
    """A command line that repeats `exchange`. `shell` tells where the key comes from, and how the service is
    reached."""
    start = ["curl -sS -i", *shell.options]
    if first_field(exchange.headers, "content-encoding"):  # what is wrong may show only where a client accepts that
        start.append("--compressed")
    if re.search(r"/\.\.?/", exchange.url):
        start.append("--path-as-is")
    if exchange.method != "GET":
        start.append("-I" if exchange.method == "HEAD" else f"-X {exchange.method}")  # else curl waits for a body
    if exchange.shell_user:
        start.append(f'-u "{exchange.shell_user}"')
    else:
        start += [f'-H "{_in_double_quotes(_sendable(field_))}"' for field_ in exchange.shell_headers]
    words = [_with_key(" ".join(start), shell.key)]
    words += [f"-H {_in_single_quotes(field_)}" for field_ in _unusual(exchange)]
    if exchange.request_body is not None:
        words.append(f"--data-binary {_quoted(exchange.request_body, exchange, shell.key)}")
    words.append(_quoted(exchange.url, exchange, shell.key))
    return " ".join(words)


def on_one_connection(lines: Sequence[str]) -> str:
    """One command line that does what these `curl` lines do, in turn, over one kept-alive connection."""
    setting = max((line.partition("curl ")[0] for line in lines), key=len)  # of the key, where one needs that
    return f"{setting}curl {' --next '.join(line.partition('curl ')[2] for line in lines)}"


def in_turn(lines: Sequence[str]) -> list[str]:
    """These `curl` lines; more than a few in a row that differ in nothing but the id of an order are one, in which curl
    finds the ids as alternatives."""
    shortened = []
    parts = [(line, _ID.fullmatch(line)) for line in lines]
    for start, group in groupby(parts, key=lambda part: part[1][1] if part[1] else None):
        alike = [(line, found[2] if found else "") for line, found in group]
        if start is None or len(alike) <= _FEW:
            shortened += [line for line, _ in alike]
        else:
            shortened.append(f"{start}{{{','.join(order for _, order in alike)}}}'")
    return shortened


def at_once(lines: Sequence[str]) -> str:
    """Lines that do what these `curl` lines do, all at the same time."""
    return "\n".join([*(f"{line} &" for line in lines), "wait"])


def _quoted(text: str, exchange: Exchange, key: str) -> str:
    """`text`, the URL or the body of `exchange`, for the shell, which fills in the key if it stands there unencoded."""
    if not (exchange.key_plain and KEY_LABEL in text):
        return _in_single_quotes(text)
    parts = (re.sub(r'["\\`$]', r"\\\g<0>", part) for part in text.split(KEY_LABEL))
    return _with_key(f'"{"$KEY".join(parts)}"', key)


def _with_key(text: str, key: str) -> str:
    """`text` with `$KEY` replaced by `key`: a variable, or a command that prints it."""
    if not key.startswith("$("):
        return _PART_OF_KEY.sub(rf"${{\1{key}", _KEY.sub(f"${{{key}}}", text))
    if _PART_OF_KEY.search(_KEY.sub("", text)):  # which takes a variable
        return f"KEY={key}; {text}"
    return _KEY.sub(lambda _: key, text)


def _sendable(field_: str) -> str:
    # Of a field without a value curl sends nothing, unless it ends like this.
    return f"{field_[:-2]};" if field_.endswith(": ") else field_


def _unusual(exchange: Exchange) -> list[str]:
    """The header fields of `exchange`, except credentials, that curl would not send by itself, or would send
    differently."""
    sent = {name.lower(): f"{name}: {value}" for name, value in exchange.request_headers}
    known = CURLS | {field_.partition(":")[0].lower() for field_ in exchange.shell_headers}
    unusual = [field_ for name, field_ in sent.items() if name not in known and not USUAL.fullmatch(field_)]
    return [*unusual, *(f"{name}:" for name in UNASKED if name.lower() not in sent)]


def _in_double_quotes(text: str) -> str:
    # What a credential's `shell` writes in terms of $KEY stays for the shell to fill in.
    return re.sub(r'(\$\([^()]*\))|["\\`]', lambda found: found[1] or f"\\{found[0]}", text)


def _in_single_quotes(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
